#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "profiler/recording/recorded_pass.h"
#include "traces/model/copy_record.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Builds the step program from two kinds of recorded passes. `offload_pass` gives the order and the points
/// at which the model drops its references to storages: in it, every movable tensor was offloaded when it was
/// saved and dropped at once. `keep_passes`, in which nothing was offloaded, give the compute times, the
/// median per event.
///
/// Throws Error (input) if the passes differ in anything but frees and reloads: the model then changes from
/// step to step, so a recording of one step does not hold for the next. The error names the first difference.
StepProgram build_program(std::span<const RecordedPass> keep_passes, const RecordedPass& offload_pass);

/// Sets Renewal::let_go of the storages that the program holds as well as its saved tensors: `next_pass`
/// comes just after `offload_pass`, of which `program` was built, and offloads the same. Does nothing if the
/// passes differ.
void add_let_goes(StepProgram& program, const RecordedPass& offload_pass, const RecordedPass& next_pass);

/// Returns true if the passes differ in nothing but times, frees and reloads.
bool same_program(const RecordedPass& a, const RecordedPass& b);

/// Returns true if the passes differ in nothing but times, frees and reloads until their first backward
/// begins.
bool same_until_backward(const RecordedPass& a, const RecordedPass& b);

/// Returns the highest number of live bytes in the pass.
Bytes peak_of(const RecordedPass& pass);

/// Returns true if the program built from `offload_pass` also holds for steps that copy every tensor back
/// densely, such as `dense_pass`: both passes do the same, and no tensor that unpack returned is in use
/// beyond its node. The offload pass cannot show the lifetime of tensors that share a copy with others, or of
/// parameters and the like, which only dense steps move.
bool serves_dense_steps(const RecordedPass& offload_pass, const RecordedPass& dense_pass);

/// Returns the storages older than the step that the program frees, by the allocation of `last` that took
/// their place. A step that frees an old storage leaves a new one of its size, which the next step frees
/// instead.
std::unordered_map<std::int64_t, std::int32_t> storages_replaced_by(const StepProgram& program,
                                                                    const RecordedPass& last);

/// Returns the staging memory that gathering tensors took in a pass that copied every tensor densely.
std::vector<Staging> staging_of(const RecordedPass& pass, std::span<const CopyRecord> copies);

}  // namespace offprof
