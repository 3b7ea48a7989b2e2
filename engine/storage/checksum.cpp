#include "engine/storage/checksum.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

namespace offprof {

std::uint64_t checksum_of(const std::byte* memory, Bytes bytes) {
  return XXH3_64bits(memory, static_cast<std::size_t>(bytes));
}

}  // namespace offprof
