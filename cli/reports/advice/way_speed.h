#pragma once

#include <optional>
#include <string>

#include "cli/tables/step_size.h"
#include "simulator/advisor/advice.h"
#include "traces/model/trace.h"

namespace offprof {

/// Step time of a way in seconds.
double seconds_of(const Way& way);

/// Returns the step time with four digits from one second on, since ways differ in the last ones.
std::string time_text(const Way& way);

/// Returns the operations of the plain step (StepSize::flops, so without any recomputation; Chowdhery et al.,
/// PaLM, 2022, appendix B) in the time of a way, as a share of `peak_flops`, the device's peak rate for
/// bfloat16 in operations per second; nullopt: the program does not compute in bfloat16, or one of them is
/// not known (0). Backward of attention counts 5 products and not 4, and causal attention half, as the
/// kernels compute it.
std::optional<double> mfu_of(const Trace& plain, double peak_flops, const Way& way);

/// Returns `1.250 s (+5.0%), 13100 tokens/s, MFU 53%`, with `change` after the time. `plain` is the trace of
/// the step with nothing done.
std::string speed_text(const Trace& plain, double peak_flops, const Way& way, const std::string& change = "");

}  // namespace offprof
