#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "traces/byte_source.h"

namespace offprof {

/// The file's bytes in pieces, unpacked if they are gzip, so that a large file takes little memory. Throws
/// Error (input), here or from read(): not there, a folder, unreadable, gzip that is broken or a bomb.
std::unique_ptr<ByteSource> open_file(const std::string& path);

/// No text that offprof reads is longer: what goes on beyond is something else. The JSON reader counts the
/// digits of a number in 31 bits.
inline constexpr std::size_t kMostTextBytes = std::size_t{2} << 30;

/// All bytes of the file, as open_file has them. Throws Error (input) for more than `most`, too.
std::string read_file(const std::string& path, std::size_t most = kMostTextBytes);

/// Checks early that `path` can be written, so that an hour of work is not lost at its end. Leaves nothing
/// behind. Throws Error (input). `-` is always fine.
void check_writable(const std::string& path);

/// Writes `content` beside `path`, syncs, and renames over it; the old file survives any failure and no
/// temporary is left. `-` writes to standard output. A name ending in `.gz` compresses. Throws Error (input),
/// with the reason.
void write_file(const std::string& path, std::string_view content);

}  // namespace offprof
