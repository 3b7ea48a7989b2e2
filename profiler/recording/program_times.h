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

/// A stretch is a part of `program` between two of its phases, packs and unpacks. Replaces its time by the
/// median over `passes`, which were marked only there, minus `hook_ns` of the host's time for each hook.
/// Recorded proportions within a stretch stay. For a separate device this fills Program::work with the
/// times of the host and of the compute stream. If the host fell behind in the pass, the stream counts as
/// busy, since marks do not show what it waited for. Does nothing and returns false if `passes` do not belong
/// to this program.
bool set_marked_times(StepProgram& program, const std::vector<StepMarks>& passes, Nanoseconds hook_ns,
                      ComputesOn computes);

/// Scales the compute times of each phase to match Calibration::phases, since recording takes time itself,
/// the more the shorter the operators are. Returns the factor furthest from 1 of the phases of a step;
/// nullopt: none was scaled.
std::optional<double> fit_to_phases(StepProgram& program, const Calibration& calibration);

/// Removes the time that recording takes: scales the compute times of `program` so that a replay under
/// `policy` computes for as long as a step that is not recorded, without stall time. If the program has work,
/// the time that the host is behind counts too. Returns the factor. Does nothing and returns nullopt if there
/// is no factor: nothing was recorded, or offloading costs more than the step computes.
std::optional<double> fit_to_compute(StepProgram& program, const Calibration& calibration,
                                     const Policy& policy, Nanoseconds compute_ns);

/// Gives a program on a separate device, whose steps were not marked, work that takes no host time.
void assume_host_ahead(StepProgram& program);
/// Does the same with the ratio of host time to stream time of `marked`, which has work.
void assume_work(StepProgram& program, const StepProgram& marked);

/// Returns the additional compute time per MiB copied in, from steps with everything offloaded: the excess of
/// their compute time over plain steps, minus the excess that a replay with all other costs predicts.
/// `program` is fitted.
MeasuredQuartiles reload_cost(const StepProgram& program, const Calibration& calibration,
                              const std::vector<Nanoseconds>& offloaded_extra_ns);

}  // namespace offprof
