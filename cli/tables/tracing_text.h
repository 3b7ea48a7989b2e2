#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "traces/model/trace.h"

namespace offprof {

/// A line of a report: its label, its text and its tone.
struct LabelledLine {
  std::string label;
  std::string text;
  Tone tone = Tone::kPlain;
};

/// Returns the lines that apply about the tracing of a GPU (`tracing`), the fraction of the calibrated link
/// speed that copies reached (`copies`), and the device memory in use outside the allocator (`CUDA`).
std::vector<LabelledLine> tracing_lines(const std::optional<Tracing>& tracing,
                                        const Environment& environment);

/// Adds the figures of tracing_lines to the member `tracing` of a report: `relative_cost` (0.012 means 1.2
/// %), and `d2h_bytes_per_second` and `h2d_bytes_per_second` of large copies. Omits unknown figures.
void add_tracing_figures(nlohmann::ordered_json& report, const std::optional<Tracing>& tracing);

}  // namespace offprof
