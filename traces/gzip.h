#pragma once

#include <memory>
#include <string>
#include <string_view>

#include "traces/byte_source.h"

namespace offprof {

/// Whether a file that begins so is gzip's.
bool is_gzip(std::string_view head);

/// What every member of a gzip file holds, one after the other; bytes behind the last are no part of it.
/// `name` stands for the file in errors. Reading throws Error (input) where the data is damaged or ends
/// early, and where it unpacks to so many times its size that it can only be a bomb.
std::unique_ptr<ByteSource> unpack_gzip(std::unique_ptr<ByteSource> packed, std::string name);

/// A gzip file of one member.
std::string pack_gzip(std::string_view content);

}  // namespace offprof
