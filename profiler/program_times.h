#pragma once

#include "traces/calibration.h"
#include "traces/program.h"

namespace offprof {

/// Scales the compute times of `program` so that a replay with nothing offloaded takes as long as such a step
/// does unrecorded: recording takes its own time. Returns the factor; 1 where nothing was recorded.
double fit_to_step(Program& program, const Calibration& calibration);

/// Multiplies every compute time; what rounding leaves over goes to the next event, so that the sum is exact.
void scale_compute(Program& program, double factor);

}  // namespace offprof
