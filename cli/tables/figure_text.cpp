#include "cli/tables/figure_text.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <utility>

#include "traces/base/whole_number.h"

namespace offprof {

std::string times_line(bool modelled, const Page& page, bool has_ranges) {
  if (!modelled) return "";
  return "times      " + page.paint(Tone::kWarning, kTimesAreModelled) + "\n" +
         (has_ranges ? "range      beside the step time: nine of ten real steps should lie in it\n" : "");
}

std::string reruns_text(const RunSettings& settings, const Page& page) {
  constexpr std::size_t kLabelWidth = 11;
  std::string text;
  const auto add = [&](const char* label, const std::string& what) {
    const std::string line =
        what + ": recorded without saved tensors; their forward is recomputed in backward";
    text += fmt::format("{:<{}}{}\n", label, kLabelWidth, wrap(line, page.width, kLabelWidth));
  };
  if (!settings.checkpointed.empty())
    add("checkpoint", fmt::format("{}", fmt::join(settings.checkpointed, " ")));
  if (settings.slices) add("slices", describe(settings.slices));
  return text;
}

std::string metric_text(std::string_view key) {
  return key == "exposed_ns" ? "stall time" : std::string(key);
}

std::string figure_text(MetricUnit unit, std::optional<double> value) {
  return value ? format_metric(unit, *value) : "-";
}

std::string duration_text(Nanoseconds duration, Nanoseconds unsure_by) {
  Nanoseconds unit = 1;
  while (unit <= unsure_by / 10) unit *= 10;
  if (unit <= 1 || duration == 0) return format_duration(duration);
  const Nanoseconds rounded = (duration + unit / 2) / unit * unit;
  const std::array<std::pair<Nanoseconds, const char*>, 4> scales = {
      {{1'000'000'000, "s"}, {1'000'000, "ms"}, {1000, "us"}, {1, "ns"}}};
  const auto scale = std::ranges::find_if(
      scales, [&](const auto& one) { return one.first <= std::max(rounded, unit) || one.first == 1; });
  int digits = 0;
  for (Nanoseconds place = scale->first; place > unit; place /= 10) ++digits;
  const double shown = static_cast<double>(rounded) / static_cast<double>(scale->first);
  const int most = shown < 9.995 ? 2 : shown < 99.95 ? 1 : 0;  // the digits that format_duration prints
  if (digits > most) return format_duration(duration);
  return fmt::format("~{:.{}f} {}", shown, digits, scale->second);
}

std::string link_text(const Link& link) {
  std::string text = fmt::format("{} to host, {} to device", format_rate(link.d2h.bytes_per_second),
                                 format_rate(link.h2d.bytes_per_second));
  if (link.is_shared) text += ", shared";
  if (link.slows_both())
    text += fmt::format(", {} both at once", format_rate(link.bidirectional_bytes_per_second));
  return text;
}

nlohmann::ordered_json to_json(const TimeRange& range) {
  return {{"low", range.low_ns}, {"high", range.high_ns}};
}

std::string difference_text(MetricUnit unit, double difference) {
  if (difference == 0) return "0";
  const char* sign = difference > 0 ? "+" : "-";
  return sign + format_metric(unit, std::abs(difference));
}

std::string share_text(Bytes part, Bytes whole) {
  if (whole <= 0) return "-";
  return fmt::format("{:.1f}%", 100.0 * static_cast<double>(part) / static_cast<double>(whole));
}

std::string percent_suffix(double base, double now) {
  if (base == 0 || base == now) return "";
  return fmt::format(" ({:+.1f}%)", 100.0 * (now - base) / base);
}

nlohmann::ordered_json figure_to_json(MetricUnit unit, std::optional<double> value) {
  if (!value) return nullptr;
  if (unit == MetricUnit::kRatio) return *value;
  return to_whole(std::floor(*value));
}

nlohmann::ordered_json ops_to_json(const std::vector<OpDifference>& ops) {
  auto json = nlohmann::ordered_json::array();
  for (const OpDifference& op : ops) {
    json.push_back({{"op", op.op},
                    {"base_tensors", op.base.tensors},
                    {"base_bytes", op.base.bytes},
                    {"new_tensors", op.now.tensors},
                    {"new_bytes", op.now.bytes},
                    {"difference_bytes", op.difference()}});
  }
  return json;
}

std::string counted(std::int64_t count, std::string_view thing) {
  return fmt::format("{} {}{}", count, thing, count == 1 ? "" : "s");
}

}  // namespace offprof
