#pragma once

#include <cstdint>
#include <span>
#include <unordered_map>
#include <vector>

#include "engine/copy_record.h"
#include "profiler/recorded_pass.h"
#include "traces/program.h"

namespace offprof {

/// Makes the step program of two kinds of recorded passes: its order, and when the program lets go of each
/// storage, from `offload_pass`, in which every movable tensor was offloaded when it was saved and dropped at
/// once; its compute times, the median per event, from `keep_passes`, in which nothing was.
///
/// Throws Error (input) where the passes differ in anything but frees and reloads: the model does something
/// else from step to step, so nothing that was recorded of one step holds for the next. The first difference
/// is said.
Program build_program(std::span<const RecordedPass> keep_passes, const RecordedPass& offload_pass);

/// Whether the passes differ in nothing but times, frees and reloads.
bool same_program(const RecordedPass& a, const RecordedPass& b);

/// Whether the program made with `offload_pass` serves for steps that bring every tensor back densely as
/// well, of which `dense_pass` is one: they do the same, and nothing that unpack returned is in use beyond
/// its node. For how long it is the offload pass cannot see of tensors that share a copy with others, nor of
/// parameters and the like, which only dense steps move.
bool serves_dense_steps(const RecordedPass& offload_pass, const RecordedPass& dense_pass);

/// The storages older than the step that the program frees, by the allocation of `last` that took their
/// place: a step that frees something old leaves something new of its size, which the next step frees
/// instead.
std::unordered_map<std::int64_t, std::int32_t> storages_replaced_by(const Program& program,
                                                                    const RecordedPass& last);

/// What gathering tensors took in a pass that copied every one densely.
std::vector<Staging> staging_of(const RecordedPass& pass, std::span<const CopyRecord> copies);

}  // namespace offprof
