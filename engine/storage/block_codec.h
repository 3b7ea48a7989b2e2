#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "traces/base/units.h"

namespace offprof {

/// True if this build has a codec. Without one the functions below throw.
bool has_block_codec() noexcept;

/// Returns the name of the lossless codec, such as `blosc 1.21.3, bitshuffle and lz4`. Any number of threads
/// may use the codec at once. Throws Error (environment) if this build has none.
std::string block_codec();

/// Maximum number of bytes by which a compressed block may be longer than the block itself.
inline constexpr Bytes kMostCodecOverhead = 64;

/// Compresses `block`, whose elements are `width` bytes each; `width` affects only the compression ratio.
/// `packed` must have room for the size of `block` and kMostCodecOverhead more. Returns the number of bytes
/// written to `packed`. Throws Error (environment) if there is no memory for it.
Bytes compress_block(std::span<const std::byte> block, int width, std::span<std::byte> encoded);

/// Restores the block bit for bit. Throws Error (environment) if there is no memory for it, or if `packed` is
/// not the result of compress_block for a block of this size.
void decompress_block(std::span<const std::byte> encoded, std::span<std::byte> block);

}  // namespace offprof
