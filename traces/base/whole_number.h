#pragma once

#include <cmath>
#include <cstdint>
#include <limits>

namespace offprof {

/// Returns the whole number nearest to `value`, limited to the range of 64 bits; 0 for NaN.
inline std::int64_t to_whole(double value) {
  constexpr double kBeyond = 9223372036854775808.0;  // 2^63, the first number above
  if (std::isnan(value)) return 0;
  if (value >= kBeyond) return std::numeric_limits<std::int64_t>::max();
  if (value <= -kBeyond) return std::numeric_limits<std::int64_t>::min();
  return std::llround(value);
}

}  // namespace offprof
