#include "cli/tables/step_size.h"

#include <fmt/format.h>

#include <charconv>

#include "traces/base/units.h"

namespace offprof {
std::vector<std::int64_t> dimensions_of(std::string_view spec) {
  const std::size_t open = spec.find('['), close = spec.find(']');
  if (open == 0 || open == std::string_view::npos || close == std::string_view::npos) return {};
  std::vector<std::int64_t> dimensions;
  const char* at = spec.data() + open;
  const char* const end = spec.data() + close;
  while (at < end) {
    std::int64_t dimension = 0;
    const auto [next, failure] = std::from_chars(at + 1, end, dimension);
    if (failure != std::errc() || (next != end && *next != ',')) return {};
    dimensions.push_back(dimension);
    at = next;
  }
  return dimensions;
}

StepSize size_of_inputs(const std::vector<std::string>& inputs) {
  StepSize size;
  for (const std::string& input : inputs) {
    const std::vector<std::int64_t> dimensions = dimensions_of(input);
    if (dimensions.empty()) continue;
    if (!size.samples) size.samples = dimensions.front();
    if (!size.tokens && input.starts_with("int64[") && dimensions.size() == 2)
      size.tokens = dimensions[0] * dimensions[1];
  }
  return size;
}

StepSize step_size(const Trace& trace) {
  StepSize size = size_of_inputs(trace.settings.inputs);
  if (!size.samples && !size.tokens) size.tokens = trace.step_size.tokens;
  size.flops = trace.step_size.flops;
  return size;
}

namespace {

/// Data that a step processes per second.
struct Rate {
  double per_second = 0;
  const char* unit = "";
};

std::optional<Rate> rate_of(const StepSize& size, double seconds) {
  if (seconds <= 0) return std::nullopt;
  if (size.tokens) return Rate{static_cast<double>(*size.tokens) / seconds, "tokens"};
  if (size.samples) return Rate{static_cast<double>(*size.samples) / seconds, "samples"};
  return std::nullopt;
}

double seconds_of(const Metrics& metrics) {
  return static_cast<double>(metrics.step_time_ns.value_or(0)) / 1e9;
}

}  // namespace

std::string rate_text(const StepSize& size, double seconds) {
  constexpr double kNeedsNoDecimals = 100;
  const std::optional<Rate> rate = rate_of(size, seconds);
  if (!rate) return "";
  const bool has_decimal = !size.tokens && rate->per_second < kNeedsNoDecimals;
  return fmt::format("{:.{}f} {}/s", rate->per_second, has_decimal ? 1 : 0, rate->unit);
}

std::string rate_beside(const StepSize& size, const Metrics& metrics) {
  const std::string rate = rate_text(size, seconds_of(metrics));
  return rate.empty() ? "" : ", " + rate;
}

nlohmann::ordered_json rate_to_json(const StepSize& size, const Metrics& metrics) {
  nlohmann::ordered_json json = nlohmann::ordered_json::object();
  if (const auto rate = rate_of(size, seconds_of(metrics)))
    json[fmt::format("{}_per_second", rate->unit)] = rate->per_second;
  return json;
}

bool computes_in_bfloat16(const StepProgram& program) {
  Bytes of_bfloat16 = 0, all = 0;
  for (const SavedTensor& saved : program.saved) {
    all += saved.bytes;
    if (saved.layout->dtype == "bfloat16") of_bfloat16 += saved.bytes;
  }
  return 2 * of_bfloat16 > all;
}

}  // namespace offprof
