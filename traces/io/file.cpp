#include "traces/io/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <climits>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <utility>

#include "traces/base/descriptor.h"
#include "traces/base/error.h"
#include "traces/base/units.h"
#include "traces/io/gzip.h"

namespace offprof {
namespace {

constexpr std::size_t kChunk = 1 << 18;

/// Bytes of a file as it is on the disk.
class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!file_.valid()) refuse(errno);
    head_.resize(kChunk);
    head_.resize(read_file_into(head_));
  }

  /// Returns the bytes that read() returns first. They contain the file's signature unless the file is
  /// shorter.
  std::string_view head() const { return std::string_view(head_).substr(head_taken_); }

  /// Returns the size in bytes according to the file system; 0 if it does not know.
  std::size_t size() const {
    struct stat status {};
    ::fstat(file_.get(), &status);
    return static_cast<std::size_t>(std::max<off_t>(status.st_size, 0));
  }

  std::size_t read(std::span<char> room) override {
    const std::size_t from_head = head().copy(room.data(), room.size());
    head_taken_ += from_head;
    return from_head + read_file_into(room.subspan(from_head));
  }

 private:
  [[noreturn]] void refuse(int error) const {
    throw input_error(fmt::format("cannot read '{}': {}", path_,
                                  error == EISDIR ? "it is a folder" : std::strerror(error)));
  }

  std::size_t read_file_into(std::span<char> room) {
    std::size_t size = 0;
    while (size < room.size()) {
      const ssize_t got = ::read(file_.get(), room.data() + size, room.size() - size);
      if (got < 0 && errno != EINTR) refuse(errno);
      if (got == 0) break;
      if (got > 0) size += static_cast<std::size_t>(got);
    }
    return size;
  }

  std::string path_;
  Descriptor file_;
  std::string head_;
  std::size_t head_taken_ = 0;
};

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path) {
  auto file = std::make_unique<PlainSource>(path);
  if (is_gzip(file->head())) return decompress_gzip(std::move(file), path);
  return file;
}

std::string read_file(const std::string& path, std::size_t most) {
  const auto source = open_file(path);
  const auto refuse_more = [&](std::size_t size) {
    if (size > most)
      throw input_error(fmt::format("'{}' has more than {}", path, format_bytes(static_cast<Bytes>(most))));
  };
  const auto* const plain = dynamic_cast<const PlainSource*>(source.get());
  if (plain != nullptr) refuse_more(plain->size());
  std::string bytes(plain != nullptr ? plain->size() + 1 : kChunk, '\0');
  std::size_t size = 0;
  while ((size += source->read(std::span(bytes).subspan(size))) == bytes.size()) {
    refuse_more(size);
    bytes.resize(2 * size);
  }
  refuse_more(size);
  bytes.resize(size);
  return bytes;
}

}  // namespace offprof
