#pragma once

#include <string>
#include <string_view>

namespace offprof {

/// The file's bytes, unpacked if they are gzip. Throws Error (input): not there, a folder, unreadable, broken
/// gzip.
std::string read_file(const std::string& path);

/// Checks early that `path` can be written, so that an hour of work is not lost at its end. Leaves nothing
/// behind. Throws Error (input). `-` is always fine.
void check_writable(const std::string& path);

/// Writes `content` beside `path`, syncs, and renames over it; the old file survives any failure and no
/// temporary is left. `-` writes to standard output. A name ending in `.gz` compresses. Throws Error (input),
/// with the reason.
void write_file(const std::string& path, std::string_view content);

/// From here on SIGINT, SIGTERM and SIGHUP remove the temporary that is being written, if any, and end the
/// process at once with status 128 + signal (130 for Ctrl-C): no file is ever half-written, however long a
/// step runs.
void exit_cleanly_on_signals();

}  // namespace offprof
