#pragma once

#include <optional>
#include <vector>

#include "profiler/recording/step_mark.h"
#include "traces/model/calibration.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Processor of the model: the host thread itself, or a device to which that thread launches work.
enum class ComputesOn { kHost, kDevice };

/// Replaces the times of the stretches of `program` between its phases, packs and unpacks by those of steps
/// that were marked only there: the median over `passes`, minus `hook_ns` of the host's time for each hook.
/// Within a stretch the recorded proportions stay. For a separate device this fills Program::work with the
/// times of the host and of the compute stream. If the host fell behind in the pass, the stream counts as
/// busy, since marks do not show what it waited for. Does nothing and returns false if `passes` do not belong
/// to this program.
bool set_marked_times(StepProgram& program, const std::vector<StepMarks>& passes, Nanoseconds hook_ns,
                      ComputesOn computes);

/// Scales the compute times of each phase to match Calibration::phases, since recording takes its own time,
/// more of it if operators are short. Returns the factor furthest from 1 of the phases of a step; nullopt:
/// none was scaled.
std::optional<double> fit_to_phases(StepProgram& program, const Calibration& calibration);

/// Scales the compute times of `program` so that a replay under `policy` computes for as long as such a step
/// does unrecorded, without stall time, since recording takes its own time. If the program has work, the time
/// that the host is behind counts too. Returns the factor. Does nothing and returns nullopt if there is no
/// factor: nothing was recorded, or offloading costs more than the step computes.
std::optional<double> fit_to_compute(StepProgram& program, const Calibration& calibration,
                                     const Policy& policy, Nanoseconds compute_ns);

/// Gives a program on a separate device, whose steps were not marked, work that takes no host time.
void assume_host_ahead(StepProgram& program);
/// Does the same with the ratio of host time to stream time of `marked`, which has work.
void assume_work(StepProgram& program, const StepProgram& marked);

/// Returns how much longer compute takes for each MiB copied in, from steps with everything offloaded: the
/// excess of their compute time over plain steps, minus what a replay with all other costs predicts.
/// `program` is fitted.
MeasuredQuartiles reload_cost(const StepProgram& program, const Calibration& calibration,
                              const std::vector<Nanoseconds>& offloaded_extra_ns);

}  // namespace offprof
