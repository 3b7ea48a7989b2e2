#pragma once

#include <optional>

#include "profiler/recording/activity.h"
#include "profiler/recording/recorded_pass.h"
#include "traces/base/units.h"

namespace offprof {

/// Returns the offset from the tracer's clock to the clock of the recorded pass, whose marks are events of
/// the compute stream; nullopt: no operator has work that shows it.
///
/// The mark at an operator's end is reached when the stream has done the operator's work, not before. So no
/// such mark is earlier than the end of that work, and the least difference is the offset, except for the
/// time that a GPU needs to reach an event: about a microsecond. The stream with most of the operators' work
/// counts as the compute stream.
std::optional<Nanoseconds> offset_to_marks(const RecordedPass& pass, const GpuActivity& activity);

}  // namespace offprof
