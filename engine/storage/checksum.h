#pragma once

#include <cstddef>
#include <cstdint>

#include "traces/base/units.h"

namespace offprof {

/// Returns the XXH3 checksum (64 bits), which is faster to compute than memory is to read. It detects disk
/// errors; it is no defence against intent.
std::uint64_t checksum_of(const std::byte* memory, Bytes bytes);

}  // namespace offprof
