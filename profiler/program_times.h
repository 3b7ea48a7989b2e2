#pragma once

#include <optional>
#include <vector>

#include "traces/calibration.h"
#include "traces/policy.h"
#include "traces/program.h"

namespace offprof {

/// Scales the compute times of `program` so that a replay under `policy` computes for as long as such a step
/// does unrecorded, exposed time taken out: recording takes its own time. Returns the factor. Does nothing
/// and returns nullopt where there is none: nothing was recorded, or what offloading costs is more than the
/// step computes.
std::optional<double> fit_to_compute(Program& program, const Calibration& calibration, const Policy& policy,
                                     Nanoseconds compute_ns);

/// What compute takes longer for each MiB copied in, by steps with everything offloaded: what their compute
/// takes longer than that of plain steps, less what a replay with all other costs says. `program` is fitted.
Measured reload_cost(const Program& program, const Calibration& calibration,
                     const std::vector<Nanoseconds>& offloaded_extra_ns);

}  // namespace offprof
