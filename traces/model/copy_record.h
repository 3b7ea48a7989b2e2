#pragma once

#include <cstdint>

#include "traces/base/units.h"
#include "traces/model/work.h"

namespace offprof {

enum class CopyDirection : std::uint8_t { kD2h, kH2d };

/// Duration of one copy, on the clock of the device that made it.
struct CopyRecord {
  CopyDirection direction = CopyDirection::kD2h;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  Bytes bytes = 0;
  std::int64_t tag = 0;
  Work staging{};  ///< stream time of gathering its elements before the copy, if known
};

}  // namespace offprof
