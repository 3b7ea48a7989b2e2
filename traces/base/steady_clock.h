#pragma once

#include <chrono>

#include "traces/base/units.h"

namespace offprof {

/// Returns the time of std::chrono::steady_clock, the clock of records that are made on the host.
inline Nanoseconds steady_now() {
  return std::chrono::nanoseconds(std::chrono::steady_clock::now().time_since_epoch()).count();
}

}  // namespace offprof
