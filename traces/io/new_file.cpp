#include "traces/io/new_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstdio>
#include <cstring>
#include <utility>

#include "traces/base/error.h"
#include "traces/io/file.h"
#include "traces/io/gzip.h"

namespace offprof {
namespace {

constexpr int kMaxLinks = 40;  ///< the kernel's own limit on chains of symbolic links

std::string reason(int error) {
  return std::strerror(error);
}

/// Writes all of `content`. Returns 0 or an error number.
int write_all(int fd, std::string_view content) {
  while (!content.empty()) {
    const ssize_t written = ::write(fd, content.data(), content.size());
    if (written < 0 && errno != EINTR) return errno;
    if (written > 0) content.remove_prefix(static_cast<std::size_t>(written));
  }
  return 0;
}

bool is_special_name(const std::filesystem::path& path) {
  return path.string().starts_with("/dev/") || path.string().starts_with("/proc/");
}

Error cannot_write(const std::string& path, const std::string& why, std::string hint = {}) {
  return input_error(fmt::format("cannot write '{}': {}", path, why), std::move(hint));
}

/// Returns a hint for a failed write; empty if the error explains itself.
std::string remedy(int error) {
  if (error == ENOSPC || error == EDQUOT) return "Free space on the disk, or write elsewhere.";
  return error == EFBIG ? "Raise the limit on the size of files (`ulimit -f`), or write elsewhere." : "";
}

Destination follow(const std::string& path) {
  Destination to{.path = path};
  std::error_code error;  // creating the file reports a path that cannot be examined
  for (int links = 0; !is_special_name(to.path) && std::filesystem::is_symlink(to.path, error); ++links) {
    if (links == kMaxLinks) throw cannot_write(path, reason(ELOOP));
    to.path = to.path.parent_path() / std::filesystem::read_symlink(to.path, error);
  }
  return to;
}

std::filesystem::path folder_of(const std::filesystem::path& path) {
  return path.has_parent_path() ? path.parent_path() : std::filesystem::path(".");
}

[[noreturn]] void throw_no_temporary(const std::string& path, const Destination& to, int error) {
  const std::string folder = folder_of(to.path).string();
  std::error_code unknown;  // if the check fails, `error` has the better reason
  if (error == ENOENT && !std::filesystem::exists(folder, unknown))
    throw cannot_write(path, fmt::format("the folder '{}' does not exist", folder),
                       "Create the folder first.");
  throw cannot_write(path, fmt::format("cannot create a file in '{}': {}", folder, reason(error)),
                     remedy(error));
}

void write_direct(const std::string& path, const Destination& to, std::string_view content) {
  Descriptor file(::open(to.path.c_str(), O_WRONLY | O_CLOEXEC));
  if (!file.valid()) throw cannot_write(path, reason(errno));
  const int error = write_all(file.get(), content);
  if (error != 0) throw cannot_write(path, reason(error), remedy(error));
  if (!file.close()) throw cannot_write(path, reason(errno), remedy(errno));
}

void write_stdout(std::string_view content) {
  const bool written = std::fwrite(content.data(), 1, content.size(), stdout) == content.size();
  if (!written || std::fflush(stdout) != 0)
    throw cannot_write("standard output", reason(errno), remedy(errno));
}

/// Syncs the folder, so that a new name survives a power failure. Returns 0 or an error number. File systems
/// that cannot sync folders are accepted.
int sync_folder(const std::filesystem::path& folder) {
  const Descriptor opened(::open(folder.c_str(), O_RDONLY | O_DIRECTORY | O_CLOEXEC));
  if (!opened.valid()) return errno == EACCES ? 0 : errno;  // a folder may be writable but not readable
  return ::fsync(opened.get()) == 0 || errno == EINVAL || errno == EROFS ? 0 : errno;
}

}  // namespace

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

NewFile::NewFile(std::string path, Destination to)
    : path_(std::move(path)),
      to_(std::move(to)),
      temporary_(folder_of(to_.path)),
      file_(temporary_.take_fd()) {
  if (to_.direct) throw cannot_write(path_, "it is not a regular file, so it cannot be replaced");
  if (temporary_.error() != 0) throw_no_temporary(path_, to_, temporary_.error());
}

void NewFile::refuse(int error) const {
  const std::string old_file = to_.exists ? " (the old file is unchanged)" : "";
  throw cannot_write(path_, reason(error) + old_file, remedy(error));
}

void NewFile::write(std::string_view bytes) {
  if (const int error = write_all(file_.get(), bytes); error != 0) refuse(error);
}

void NewFile::commit() {
  if (to_.exists && ::fchmod(file_.get(), to_.mode) != 0) refuse(errno);
  if (::fsync(file_.get()) != 0) refuse(errno);
  if (!file_.close()) refuse(errno);
  if (!temporary_.rename_to(to_.path.string())) refuse(errno);
  if (const int error = sync_folder(folder_of(to_.path)); error != 0)
    throw cannot_write(path_, "the file is written, but its folder cannot be synced: " + reason(error));
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
  std::string compact;
  if (path.ends_with(".gz")) content = compact = compress_gzip(content);
  if (to.direct) return write_direct(path, to, content);
  NewFile file(path, to);
  file.write(content);
  file.commit();
}

}  // namespace offprof
