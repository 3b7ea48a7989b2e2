#pragma once

#include <string>

#include "simulator/advisor/advice.h"

namespace offprof {

/// Returns a way with these predicted figures; its other members are their defaults.
inline Way sample_way(const std::string& name, Bytes taken, Nanoseconds time_ns, bool is_within) {
  Way way{.name = name};
  way.predicted.device_reserved_peak_bytes = taken;
  way.predicted.step_time_ns = time_ns;
  way.is_within = is_within;
  return way;
}

}  // namespace offprof
