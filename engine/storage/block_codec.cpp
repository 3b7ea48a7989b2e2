#include "engine/storage/block_codec.h"

#include <blosc.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// Level from 1 to 9. Measured on activations, it is the lowest at which lz4 finds the redundancy of
/// transposed bits.
constexpr int kLevel = 5;
constexpr int kThreads = 1;  // the caller's thread

static_assert(kMostCodecOverhead >= BLOSC_MAX_OVERHEAD);

}  // namespace

bool has_block_codec() noexcept {
  return true;
}

std::string block_codec() {
  return std::string("blosc ") + blosc_get_version_string() + ", bitshuffle and lz4";
}

Bytes compress_block(std::span<const std::byte> block, int width, std::span<std::byte> encoded) {
  const int bytes =
      blosc_compress_ctx(kLevel, BLOSC_BITSHUFFLE, static_cast<std::size_t>(width), block.size(),
                         block.data(), encoded.data(), encoded.size(), BLOSC_LZ4_COMPNAME,
                         /*blocksize=*/0, kThreads);
  if (bytes <= 0) throw environment_error("no memory to compress a tensor");
  return bytes;
}

void decompress_block(std::span<const std::byte> encoded, std::span<std::byte> block) {
  std::size_t bytes = 0;
  const bool is_whole = blosc_cbuffer_validate(encoded.data(), encoded.size(), &bytes) == 0;
  if (!is_whole || bytes != block.size() ||
      blosc_decompress_ctx(encoded.data(), block.data(), block.size(), kThreads) != static_cast<int>(bytes))
    throw environment_error("a compressed tensor cannot be decompressed: its data is damaged");
}

}  // namespace offprof
