#pragma once

#include <optional>

#include "profiler/cupti/activity.h"
#include "profiler/recorded_pass.h"
#include "traces/units.h"

namespace offprof {

/// What to add to a time of the tracer's clock for the same moment on the clock of the recorded pass, whose
/// marks are events of the compute stream; nullopt: no operator has work that tells.
///
/// The mark at an operator's end is reached when the stream has done the operator's work, not before. So no
/// such mark is earlier than the end of that work, and the least of the differences is the offset, but for
/// what it takes a GPU to reach an event: about a microsecond. The compute stream is taken to be the one that
/// did most of the operators' work.
std::optional<Nanoseconds> offset_to_marks(const RecordedPass& pass, const GpuActivity& activity);

}  // namespace offprof
