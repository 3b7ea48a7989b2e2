#pragma once

#include <string>

#include "cli/tables/step_size.h"
#include "simulator/advisor/advice.h"
#include "traces/model/trace.h"

namespace offprof {

/// Step time of a way in seconds.
double seconds_of(const Way& way);

/// Returns the step time with four digits from one second on, since ways differ in the last ones.
std::string time_text(const Way& way);

/// Returns `1.250 s (+5.0%), 13100 tokens/s, MFU 53%`, with `change` after the time. `plain` is the trace of
/// the step with nothing done; `peak_flops` the device's peak rate for bfloat16 in operations per second, 0:
/// not known. MFU: the operations of the plain step (StepSize::flops, so without any recomputation;
/// Chowdhery et al., PaLM, 2022, appendix B) as a share of that rate.
std::string speed_text(const Trace& plain, double peak_flops, const Way& way, const std::string& change = "");

}  // namespace offprof
