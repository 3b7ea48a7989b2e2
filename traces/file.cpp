#include "traces/file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zlib.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <climits>
#include <csignal>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <new>
#include <utility>

#include "traces/error.h"

namespace offprof {
namespace {

constexpr std::size_t kChunk = 1 << 18;
constexpr int kGzipWindow = 15 + 16;  ///< zlib.h: the largest window, plus 16 for a gzip header
constexpr int kMaxLinks = 40;         ///< as the kernel's own limit on chains of symbolic links

std::string reason(int error) {
  return std::strerror(error);
}

/// The temporary that a signal must remove; empty when there is none. Only the thread that writes a file sets
/// it.
std::array<char, PATH_MAX> g_temporary{};

void remember_temporary(const std::string& path) {
  const std::size_t length = std::min(path.size(), g_temporary.size() - 1);
  path.copy(g_temporary.data() + 1, length - 1, 1);
  g_temporary[length] = '\0';
  g_temporary[0] = path[0];  // last: a signal in between sees an empty name, never half a one
}

void forget_temporary() {
  g_temporary[0] = '\0';
}

extern "C" void end_on_signal(int signal) {
  if (g_temporary[0] != '\0') ::unlink(g_temporary.data());
  ::_exit(128 + signal);
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

/// A new file beside the one that is written, gone at the end of scope unless it was renamed.
class Temporary {
 public:
  explicit Temporary(const std::filesystem::path& folder) {
    for (int attempt = 0; fd_ < 0 && (attempt == 0 || errno == EEXIST); ++attempt) {
      path_ = folder / fmt::format(".offprof-{}-{}.tmp", ::getpid(), attempt);
      fd_ = ::open(path_.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
    }
    error_ = fd_ < 0 ? errno : 0;
    if (fd_ >= 0) remember_temporary(path_.string());
  }
  ~Temporary() {
    if (error_ == 0 && !renamed_) ::unlink(path_.c_str());
    forget_temporary();
  }
  Temporary(const Temporary&) = delete;
  Temporary& operator=(const Temporary&) = delete;

  int take_fd() { return std::exchange(fd_, -1); }
  int error() const { return error_; }
  bool rename_to(const std::string& path) {
    renamed_ = ::rename(path_.c_str(), path.c_str()) == 0;
    return renamed_;
  }

 private:
  std::filesystem::path path_;
  int fd_ = -1;
  int error_ = 0;
  bool renamed_ = false;
};

constexpr std::string_view kGzipMagic = "\x1f\x8b";

bool is_gzip(std::string_view bytes) {
  return bytes.starts_with(kGzipMagic);
}

[[noreturn]] void throw_broken_gzip(const std::string& path, int code) {
  const bool short_file = code == Z_BUF_ERROR || code == Z_OK;
  throw input_error(
      fmt::format("cannot unpack '{}': {}", path,
                  short_file ? "the gzip data ends early (truncated?)" : "the gzip data is damaged"),
      "Copy or record the file again.");
}

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

/// Inflates every member of a gzip file.
class GzipSource final : public ByteSource {
 public:
  GzipSource(std::unique_ptr<PlainSource> file, std::string path)
      : file_(std::move(file)), path_(std::move(path)), packed_(kChunk, '\0') {
    if (inflateInit2(&stream_, kGzipWindow) != Z_OK) throw std::bad_alloc();
  }
  ~GzipSource() override { inflateEnd(&stream_); }
  GzipSource(const GzipSource&) = delete;
  GzipSource& operator=(const GzipSource&) = delete;

  std::size_t read(std::span<char> room) override {
    std::size_t size = 0;
    while (size < room.size() && !at_end_) size += inflate_into(room.subspan(size));
    return size;
  }

 private:
  std::size_t inflate_into(std::span<char> room) {
    if (stream_.avail_in == 0) refill();
    const auto size = static_cast<uInt>(std::min<std::size_t>(room.size(), UINT_MAX));
    stream_.next_out = reinterpret_cast<Bytef*>(room.data());
    stream_.avail_out = size;
    const int code = inflate(&stream_, Z_NO_FLUSH);
    if (code != Z_OK && code != Z_STREAM_END) throw_broken_gzip(path_, code);
    if (code == Z_STREAM_END) next_member();
    return size - stream_.avail_out;
  }

  /// What follows the last member, if anything, is no part of the file's content.
  void next_member() {
    if (stream_.avail_in < kGzipMagic.size()) refill();
    const std::string_view rest(reinterpret_cast<const char*>(stream_.next_in), stream_.avail_in);
    at_end_ = !is_gzip(rest);
    inflateReset(&stream_);
  }

  /// Appends to what is left of the input.
  void refill() {
    const std::size_t left = stream_.avail_in;
    if (left > 0) std::memmove(packed_.data(), stream_.next_in, left);
    const std::size_t got = file_->read(std::span(packed_).subspan(left));
    stream_.next_in = reinterpret_cast<Bytef*>(packed_.data());
    stream_.avail_in = static_cast<uInt>(left + got);
  }

  std::unique_ptr<PlainSource> file_;
  std::string path_;
  std::string packed_;
  z_stream stream_{};
  bool at_end_ = false;
};

std::string compress(std::string_view content) {
  z_stream stream{};
  const int started = deflateInit2(&stream, Z_DEFAULT_COMPRESSION, Z_DEFLATED, kGzipWindow, MAX_MEM_LEVEL,
                                   Z_DEFAULT_STRATEGY);
  if (started != Z_OK) throw std::bad_alloc();  // zlib.h: with these parameters only memory can lack
  std::string packed;
  std::size_t taken = 0;
  std::string chunk(kChunk, '\0');
  int code = Z_OK;
  while (code != Z_STREAM_END) {
    const std::size_t portion = std::min(content.size() - taken, kChunk);
    stream.next_in = reinterpret_cast<Bytef*>(const_cast<char*>(content.data() + taken));
    stream.avail_in = static_cast<uInt>(portion);
    stream.next_out = reinterpret_cast<Bytef*>(chunk.data());
    stream.avail_out = static_cast<uInt>(chunk.size());
    code = deflate(&stream, taken + portion == content.size() ? Z_FINISH : Z_NO_FLUSH);
    taken += portion - stream.avail_in;
    packed.append(chunk, 0, chunk.size() - stream.avail_out);
  }
  deflateEnd(&stream);
  return packed;
}

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
  throw cannot_write(path, fmt::format("cannot make a file in '{}': {}", folder, reason(error)));
}

void write_direct(const std::string& path, const Destination& to, std::string_view content) {
  Descriptor file(::open(to.path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) throw cannot_write(path, reason(errno));
  const int error = write_all(file.get(), content);
  if (error != 0) throw cannot_write(path, reason(error));
  if (!file.close()) throw cannot_write(path, reason(errno));
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
  throw cannot_write(path, reason(error) + old_file,
                     error == ENOSPC || error == EDQUOT ? "Make room on the disk, or write elsewhere." : "");
}

void write_stdout(std::string_view content) {
  const bool written = std::fwrite(content.data(), 1, content.size(), stdout) == content.size();
  if (!written || std::fflush(stdout) != 0) throw cannot_write("standard output", reason(errno));
}

}  // namespace

std::unique_ptr<ByteSource> open_file(const std::string& path) {
  auto file = std::make_unique<PlainSource>(path);
  if (is_gzip(file->head())) return std::make_unique<GzipSource>(std::move(file), path);
  return file;
}

std::string read_file(const std::string& path) {
  const auto source = open_file(path);
  const auto* const plain = dynamic_cast<const PlainSource*>(source.get());
  std::string bytes(plain != nullptr ? plain->size() + 1 : kChunk, '\0');
  std::size_t size = 0;
  while ((size += source->read(std::span(bytes).subspan(size))) == bytes.size()) bytes.resize(2 * size);
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
  if (path.ends_with(".gz")) content = packed = compress(content);
  if (to.direct) return write_direct(path, to, content);
  replace(path, to, content);
}

void exit_cleanly_on_signals() {
  for (const int signal : {SIGINT, SIGTERM, SIGHUP}) {
    struct sigaction action {};
    ::sigaction(signal, nullptr, &action);
    if (action.sa_handler == SIG_IGN) continue;  // as nohup and background jobs ask
    action = {};
    action.sa_handler = end_on_signal;
    ::sigaction(signal, &action, nullptr);
  }
}

}  // namespace offprof
