#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "traces/trace.h"

namespace offprof {

/// A line of a report: its label, what it says, and how that is meant.
struct LabelledLine {
  std::string label;
  std::string text;
  Tone tone = Tone::kPlain;
};

/// What there is to say of how a GPU was traced (`tracing`), of what copies reached of the calibrated link
/// (`copies`), and of the device's memory that the allocator does not have (`CUDA`): the lines that apply.
std::vector<LabelledLine> tracing_lines(const std::optional<Tracing>& tracing,
                                        const Environment& environment);

/// Adds what tracing_lines computes to the member `tracing` of a report: `relative_cost`, with 0.012 for
/// 1.2 %, and `d2h_bytes_per_second` and `h2d_bytes_per_second` of large copies; what is known of it.
void add_tracing_figures(nlohmann::ordered_json& report, const std::optional<Tracing>& tracing);

}  // namespace offprof
