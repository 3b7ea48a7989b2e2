#include "traces/file.h"

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

#include "traces/error.h"
#include "traces/gzip.h"
#include "traces/temporary.h"
#include "traces/units.h"

namespace offprof {
namespace {

constexpr std::size_t kChunk = 1 << 18;
constexpr int kMaxLinks = 40;  ///< as the kernel's own limit on chains of symbolic links

std::string reason(int error) {
  return std::strerror(error);
}

/// A file descriptor that closes itself.
class Descriptor {
 public:
  explicit Descriptor(int fd) : fd_(fd) {}
  ~Descriptor() { close(); }
  Descriptor(const Descriptor&) = delete;
  Descriptor& operator=(const Descriptor&) = delete;

  int get() const { return fd_; }
  bool valid() const { return fd_ >= 0; }
  /// false with errno where the last writes failed, as on network file systems.
  bool close() { return fd_ < 0 || ::close(std::exchange(fd_, -1)) == 0; }

 private:
  int fd_;
};

/// A file as it lies on the disk.
class PlainSource final : public ByteSource {
 public:
  explicit PlainSource(const std::string& path)
      : path_(path), file_(::open(path.c_str(), O_RDONLY | O_CLOEXEC)) {
    if (!file_.valid()) refuse(errno);
    head_.resize(kChunk);
    head_.resize(read_file_into(head_));
  }

  /// What read() gives first; it is longer than any file's signature, unless the file is not.
  std::string_view head() const { return std::string_view(head_).substr(head_taken_); }

  /// Bytes, as the file system knows them; 0 where it does not.
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
    throw input_error(
        fmt::format("cannot read '{}': {}", path_, error == EISDIR ? "it is a folder" : reason(error)));
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

/// 0, or the error number of what went wrong.
int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

/// Where writing to a path ends up.
struct Destination {
  std::filesystem::path path;  ///< symbolic links followed
  bool direct = false;         ///< a terminal, a pipe, a device: nothing that can be replaced
  bool exists = false;
  mode_t mode = 0;
};

bool is_special_name(const std::filesystem::path& path) {
  return path.string().starts_with("/dev/") || path.string().starts_with("/proc/");
}

Error cannot_write(const std::string& path, const std::string& why, std::string hint = {}) {
  return input_error(fmt::format("cannot write '{}': {}", path, why), std::move(hint));
}

/// What to do about a write that failed; empty where it does not say itself.
std::string remedy(int error) {
  if (error == ENOSPC || error == EDQUOT) return "Make room on the disk, or write elsewhere.";
  return error == EFBIG ? "Raise the limit on the size of files (`ulimit -f`), or write elsewhere." : "";
}

Destination follow(const std::string& path) {
  Destination to{.path = path};
  std::error_code error;  // what cannot be looked at is found out when the file is made
  for (int links = 0; !is_special_name(to.path) && std::filesystem::is_symlink(to.path, error); ++links) {
    if (links == kMaxLinks) throw cannot_write(path, reason(ELOOP));
    to.path = to.path.parent_path() / std::filesystem::read_symlink(to.path, error);
  }
  return to;
}

/// Throws where the path is a folder or may not be written.
Destination find_destination(const std::string& path) {
  if (path.empty()) throw cannot_write(path, "the name is empty");
  Destination to = follow(path);
  struct stat status {};
  to.exists = ::stat(to.path.c_str(), &status) == 0;
  if (!to.exists && errno != ENOENT) throw cannot_write(path, reason(errno));
  if (!to.exists) return to;
  if (S_ISDIR(status.st_mode)) throw cannot_write(path, "it is a folder", "Name a file in it.");
  if (::access(to.path.c_str(), W_OK) != 0) throw cannot_write(path, reason(errno));
  to.direct = is_special_name(to.path) || !S_ISREG(status.st_mode);
  to.mode = status.st_mode & 07777;
  return to;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

[[noreturn]] void throw_no_temporary(const std::string& path, const Destination& to, int error) {
  const std::string folder = folder_of(to.path).string();
  std::error_code unknown;  // where it cannot be told, `error` says more
  if (error == ENOENT && !std::filesystem::exists(folder, unknown))
    throw cannot_write(path, fmt::format("the folder '{}' does not exist", folder), "Make the folder first.");
  throw cannot_write(path, fmt::format("cannot make a file in '{}': {}", folder, reason(error)),
                     remedy(error));
}

void write_direct(const std::string& path, const Destination& to, std::string_view content) {
  Descriptor file(::open(to.path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) throw cannot_write(path, reason(errno));
  const int error = write_all(file.get(), content);
  if (error != 0) throw cannot_write(path, reason(error), remedy(error));
  if (!file.close()) throw cannot_write(path, reason(errno), remedy(errno));
}

/// Content, mode and sync; 0, or the error number.
int fill(Descriptor& file, const Destination& to, std::string_view content) {
  if (const int error = write_all(file.get(), content); error != 0) return error;
  if (to.exists && ::fchmod(file.get(), to.mode) != 0) return errno;
  if (::fsync(file.get()) != 0) return errno;
  return file.close() ? 0 : errno;
}

void replace(const std::string& path, const Destination& to, std::string_view content) {
  Temporary temporary(folder_of(to.path));
  if (temporary.error() != 0) throw_no_temporary(path, to, temporary.error());
  Descriptor file(temporary.take_fd());
  int error = fill(file, to, content);
  if (error == 0 && !temporary.rename_to(to.path.string())) error = errno;
  if (error == 0) return;
  const std::string old_file = to.exists ? " (the old file is untouched)" : "";
  throw cannot_write(path, reason(error) + old_file, remedy(error));
}

void write_stdout(std::string_view content) {
  const bool written = std::fwrite(content.data(), 1, content.size(), stdout) == content.size();
  if (!written || std::fflush(stdout) != 0)
    throw cannot_write("standard output", reason(errno), remedy(errno));
}

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path) {
  auto file = std::make_unique<PlainSource>(path);
  if (is_gzip(file->head())) return unpack_gzip(std::move(file), path);
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

void check_writable(const std::string& path) {
  if (path == "-") return;
  const Destination to = find_destination(path);
  if (to.direct) return;
  Temporary probe(folder_of(to.path));
  if (probe.error() != 0) throw_no_temporary(path, to, probe.error());
  Descriptor(probe.take_fd());
}

void write_file(const std::string& path, std::string_view content) {
  if (path == "-") return write_stdout(content);
  const Destination to = find_destination(path);
  std::string packed;
  if (path.ends_with(".gz")) content = packed = pack_gzip(content);
  if (to.direct) return write_direct(path, to, content);
  replace(path, to, content);
}

}  // namespace offprof
