#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>

#include "traces/io/byte_source.h"

namespace offprof {

/// Opens a file and reads its bytes in pieces, so that a large file takes little memory. Decompresses gzip.
/// Throws Error (input), here or from read(), if the file does not exist, is a folder, is unreadable, or is
/// gzip that is damaged or a decompression bomb.
std::unique_ptr<ByteSource> open_file(const std::string& path);

/// Upper limit for the texts that offprof reads. A longer text is not one of our files. The JSON reader
/// counts the digits of a number in 31 bits.
inline constexpr std::size_t kMostTextBytes = std::size_t{2} << 30;

/// Reads all bytes of a file, with the errors of open_file. Also throws Error (input) for more than `most`
/// bytes.
std::string read_file(const std::string& path, std::size_t most = kMostTextBytes);

/// Checks early that `path` can be written, so that a long run does not fail at its end. Leaves no file
/// behind. Throws Error (input). `-` is always accepted.
void check_writable(const std::string& path);

/// Writes `content` to a temporary file beside `path`, syncs it and renames it to `path`. The old file
/// survives any failure and no temporary file is left. `-` writes to standard output. A name that ends in
/// `.gz` compresses. Throws Error (input) with the reason.
void write_file(const std::string& path, std::string_view content);

}  // namespace offprof
