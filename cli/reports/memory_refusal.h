#pragma once

#include "profiler/plugin/plugin.h"
#include "traces/base/error.h"

namespace offprof {

/// Returns the error for a run whose measured steps did not fit into the device's memory. It contains the
/// size of the failed request, the contents of memory at the peak, and a policy that fits according to a
/// simulation of the recording. `result` must have a refusal.
Error memory_refusal_error(const RunResult& result);

}  // namespace offprof
