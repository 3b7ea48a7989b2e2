#pragma once

#include <cstddef>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Returns bytes that depend on their position and on `seed`.
inline std::vector<std::byte> disk_pattern(Bytes bytes, unsigned seed) {
  std::vector<std::byte> pattern(static_cast<std::size_t>(bytes));
  unsigned state = seed * 2654435761U + 1;
  for (std::byte& byte : pattern) {
    state = state * 1664525U + 1013904223U;
    byte = static_cast<std::byte>(state >> 24U);
  }
  return pattern;
}

}  // namespace offprof
