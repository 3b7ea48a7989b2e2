#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traces/io/byte_source.h"

namespace offprof {

/// Returns true if a file that begins with `head` is in gzip format.
bool is_gzip(std::string_view head);

/// Returns the decompressed content of all members of a gzip file, one after the other. Bytes after the last
/// member are ignored. `name` is the name of the file in errors. Reading throws Error (input) if the data is
/// damaged or ends early, or if it expands so much that it can only be a decompression bomb.
std::unique_ptr<ByteSource> decompress_gzip(std::unique_ptr<ByteSource> compact, std::string name);

/// Compresses `content` into a gzip file of one member.
std::string compress_gzip(std::string_view content);

}  // namespace offprof
