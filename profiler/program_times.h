#pragma once

#include <vector>

#include "traces/calibration.h"
#include "traces/program.h"

namespace offprof {

/// Scales the compute times of `program` so that a replay with nothing offloaded takes as long as such a step
/// does unrecorded: recording takes its own time. Returns the factor; 1 where nothing was recorded.
double fit_to_step(Program& program, const Calibration& calibration);

/// What compute takes longer for each MiB copied in, by steps with everything offloaded: what their compute
/// takes longer than that of plain steps, less what a replay with all other costs says. `program` is fitted.
Measured reload_cost(const Program& program, const Calibration& calibration,
                     const std::vector<Nanoseconds>& offloaded_extra_ns);

}  // namespace offprof
