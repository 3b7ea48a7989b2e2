#pragma once

#include <cstddef>
#include <memory>
#include <span>
#include <string>
#include <string_view>

namespace offprof {

/// Bytes that come one after the other, however many there are.
class ByteSource {
 public:
  virtual ~ByteSource() = default;
  /// Fills `room` from its beginning and says how much of it; less than all of it only at the end.
  virtual std::size_t read(std::span<char> room) = 0;
};

/// Those of a text, which must outlive it.
class TextSource final : public ByteSource {
 public:
  explicit TextSource(std::string_view text) : text_(text) {}
  std::size_t read(std::span<char> room) override {
    const std::size_t size = text_.copy(room.data(), room.size());
    text_.remove_prefix(size);
    return size;
  }

 private:
  std::string_view text_;
};

/// The file's bytes in pieces, unpacked if they are gzip, so that a large file takes little memory. Throws
/// Error (input), here or from read(): not there, a folder, unreadable, broken gzip.
std::unique_ptr<ByteSource> open_file(const std::string& path);

/// All bytes of the file, as open_file has them.
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
