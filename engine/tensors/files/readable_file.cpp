#include "engine/tensors/files/readable_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "traces/base/descriptor.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Size of a single read, below Linux's limit of 0x7ffff000 bytes (the manual page of read).
constexpr std::size_t kMostAtOnce = std::size_t{1} << 30;

class DiskFile final : public ReadableFile {
 public:
  explicit DiskFile(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)), size_(find_size()) {}

  const std::string& name() const override { return path_; }
  Bytes size() const override { return size_; }

  std::size_t read(Bytes offset, std::span<char> room) const override {
    std::size_t size = 0;
    while (size < room.size()) {
      const ssize_t got = ::pread(file_.get(), room.data() + size, std::min(room.size() - size, kMostAtOnce),
                                  offset + static_cast<Bytes>(size));
      if (got < 0 && errno != EINTR) refuse(std::strerror(errno));
      if (got == 0) break;
      if (got > 0) size += static_cast<std::size_t>(got);
    }
    return size;
  }

 private:
  [[noreturn]] void refuse(const std::string& why) const {
    throw input_error(fmt::format("cannot read '{}': {}", path_, why));
  }

  Bytes find_size() const {
    struct stat status {};
    if (!file_.valid() || ::fstat(file_.get(), &status) != 0) refuse(std::strerror(errno));
    if (S_ISDIR(status.st_mode)) refuse("it is a folder");
    if (!S_ISREG(status.st_mode)) refuse("it is not a regular file, which can be read at any offset");
    return status.st_size;
  }

  std::string path_;
  Descriptor file_;
  Bytes size_;
};

}  // namespace

std::shared_ptr<const ReadableFile> open_readable(const std::string& path) {
  return std::make_shared<DiskFile>(path);
}

void read_all(const ReadableFile& file, Bytes offset, std::span<char> room) {
  const std::size_t got = file.read(offset, room);
  if (got == room.size()) return;
  throw input_error(fmt::format("'{}' ends at byte {}, but {} bytes are expected from byte {} on",
                                file.name(), offset + static_cast<Bytes>(got), room.size(), offset),
                    "The file was truncated, perhaps while it was read: copy or write it again.");
}

}  // namespace offprof
