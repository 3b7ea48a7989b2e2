#include "cli/figure_text.h"

#include <fmt/format.h>

#include <cmath>

namespace offprof {

std::string times_line(bool modelled, const Page& page) {
  if (!modelled) return "";
  return "times      " + page.paint(Tone::kWarning, kTimesAreModelled) + "\n";
}

std::string figure_text(MetricUnit unit, std::optional<double> value) {
  return value ? format_metric(unit, *value) : "-";
}

std::string difference_text(MetricUnit unit, double difference) {
  if (difference == 0) return "0";
  const char* sign = difference > 0 ? "+" : "-";
  return sign + format_metric(unit, std::abs(difference));
}

std::string percent_suffix(double base, double now) {
  if (base == 0 || base == now) return "";
  return fmt::format(" ({:+.1f}%)", 100.0 * (now - base) / base);
}

nlohmann::ordered_json figure_to_json(MetricUnit unit, std::optional<double> value) {
  if (!value) return nullptr;
  if (unit == MetricUnit::kRatio) return *value;
  return static_cast<std::int64_t>(std::floor(*value));
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

}  // namespace offprof
