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

std::string rate_text(const StepSize& size, double seconds) {
  if (size.tokens) return fmt::format("{:.0f} tokens/s", static_cast<double>(*size.tokens) / seconds);
  if (!size.samples) return "";
  constexpr double kNeedsNoDecimals = 100;
  const double rate = static_cast<double>(*size.samples) / seconds;
  return fmt::format("{:.{}f} samples/s", rate, rate < kNeedsNoDecimals ? 1 : 0);
}

std::string rate_beside(const StepSize& size, const Metrics& metrics) {
  if (!metrics.step_time_ns || *metrics.step_time_ns <= 0) return "";
  const std::string rate = rate_text(size, static_cast<double>(*metrics.step_time_ns) / 1e9);
  return rate.empty() ? "" : ", " + rate;
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
