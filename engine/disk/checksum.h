#pragma once

#include <cstddef>
#include <cstdint>

#include "traces/units.h"

namespace offprof {

/// XXH3 of 64 bits, which is faster than memory: it finds what a disk got wrong, and is no defence against
/// intent.
std::uint64_t checksum_of(const std::byte* memory, Bytes bytes);

}  // namespace offprof
