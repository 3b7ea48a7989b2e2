#pragma once

#include "engine/plugin.h"
#include "traces/error.h"

namespace offprof {

/// What to tell the user whose measured steps did not fit into the device's memory: how much was asked for,
/// what lies there at the peak, and which policy, simulated on the recording, does fit. `result` has a
/// refusal.
Error memory_refusal_error(const RunResult& result);

}  // namespace offprof
