#pragma once

#include <cstddef>
#include <span>
#include <string>

#include "traces/units.h"

namespace offprof {

/// Whether this build has a codec. Where it has none, the functions below throw.
bool has_block_codec() noexcept;

/// What compresses without loss, of which any thread may use any number at once: `blosc 1.21.3, bitshuffle
/// and lz4`. Throws Error (environment) where this build has none.
std::string block_codec();

/// So much longer than what it was made of a block may be at most.
inline constexpr Bytes kMostCodecOverhead = 64;

/// Compresses `block`, whose elements are `width` bytes each: which only matters to how much it saves.
/// `packed` has room for kMostCodecOverhead more. Returns the bytes that it fills. Throws Error
/// (environment): no memory for it.
Bytes compress_block(std::span<const std::byte> block, int width, std::span<std::byte> packed);

/// Makes the block again, to the bit. Throws Error (environment): no memory for it, or `packed` is not what
/// compress_block made of so many bytes.
void decompress_block(std::span<const std::byte> packed, std::span<std::byte> block);

}  // namespace offprof
