#pragma once

#include <span>

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

}  // namespace offprof
