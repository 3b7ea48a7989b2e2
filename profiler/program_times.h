#pragma once

#include <optional>
#include <vector>

#include "profiler/step_mark.h"
#include "traces/calibration.h"
#include "traces/policy.h"
#include "traces/program.h"

namespace offprof {

/// Whether the thread that runs the program computes, or launches what a device computes beside it.
enum class ComputesOn { kHost, kDevice };

/// Gives the stretches of `program` between its phases, packs and unpacks the times of steps that were marked
/// there alone, the median over `passes`, with `hook_ns` of the host's time taken out for each hook; within a
/// stretch in proportion to what was recorded. On a device beside the host that makes Program::work, of what
/// the host and the compute stream took: where the host fell behind in the pass the stream counts as busy,
/// since marks do not tell what it waited for. Does nothing and returns false where `passes` are none of this
/// program.
bool set_marked_times(Program& program, const std::vector<StepMarks>& passes, Nanoseconds hook_ns,
                      ComputesOn computes);

/// Scales the compute times of each phase so that it takes what Calibration::phases says: recording takes its
/// own time, more of it where operators are short. Returns the factor furthest from 1 of the phases that make
/// a step, nullopt where none was scaled.
std::optional<double> fit_to_phases(Program& program, const Calibration& calibration);

/// Scales the compute times of `program` so that a replay under `policy` computes for as long as such a step
/// does unrecorded, exposed time taken out: recording takes its own time. Where the program has work, what
/// the host is behind counts too. Returns the factor. Does nothing and returns nullopt where there is none:
/// nothing was recorded, or what offloading costs is more than the step computes.
std::optional<double> fit_to_compute(Program& program, const Calibration& calibration, const Policy& policy,
                                     Nanoseconds compute_ns);

/// Gives a program on a device beside the host, whose steps were not marked, work that takes none of the
/// host's time.
void assume_host_ahead(Program& program);
/// Likewise with the share of the host's time in the stream's that `marked`, which has work, has.
void assume_work(Program& program, const Program& marked);

/// What compute takes longer for each MiB copied in, by steps with everything offloaded: what their compute
/// takes longer than that of plain steps, less what a replay with all other costs says. `program` is fitted.
Measured reload_cost(const Program& program, const Calibration& calibration,
                     const std::vector<Nanoseconds>& offloaded_extra_ns);

}  // namespace offprof
