#include "engine/storage/scratch_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/resource.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/copies/aligned_buffer.h"
#include "engine/storage/file_system.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr int kFlags = O_RDWR | O_CLOEXEC;

/// Returns the maximum file size that the system allows this process; a longer file would end it (SIGXFSZ).
Bytes longest_file_bytes() {
  rlimit limit{};
  if (getrlimit(RLIMIT_FSIZE, &limit) != 0 || limit.rlim_cur == RLIM_INFINITY)
    return std::numeric_limits<Bytes>::max();
  return static_cast<Bytes>(std::min<rlim_t>(limit.rlim_cur, std::numeric_limits<Bytes>::max()));
}

std::string hint_for(int error) {
  switch (error) {
    case ENOENT:
      return "create the folder, or give another";
    case ENOTDIR:
      return "give a folder";
    case EACCES:
    case EPERM:
    case EROFS:
      return "give a folder that you may write to";
    case ENOSPC:
    case EDQUOT:
      return "free space there, or give a folder on another disk";
    case EMFILE:
      return "raise the limit on open files (`ulimit -n`)";
    default:
      return "give another folder";
  }
}

Error cannot_open(const std::string& folder, int error) {
  const bool used_up = error == EMFILE || error == ENFILE || error == ENOMEM;
  return {used_up ? ErrorKind::kEnvironment : ErrorKind::kInput,
          fmt::format("cannot create the disk tier's scratch file in '{}': {}", folder, std::strerror(error)),
          hint_for(error)};
}

}  // namespace

ScratchFile::ScratchFile(const std::string& folder, DirectIo direct_io, std::shared_ptr<FileCalls> calls)
    : calls_(std::move(calls)) {
  facts_.folder = folder;
  open_in(folder);
  look_around();
  choose_direct_io(direct_io);
}

ScratchFile::~ScratchFile() {
  close(fd_);
}

void ScratchFile::open_in(const std::string& folder) {
  fd_ = calls_->open(folder, kFlags | O_TMPFILE | O_EXCL);
  // These errors mean that the file system or the kernel (EISDIR) does not know O_TMPFILE.
  if (fd_ == -EOPNOTSUPP || fd_ == -EISDIR) fd_ = open_named(folder);
  if (fd_ < 0) throw cannot_open(folder, -fd_);
}

/// Creates the file under a name and removes the name at once. The name identifies the owner if the process
/// dies between the two calls.
int ScratchFile::open_named(const std::string& folder) {
  for (int attempt = 0;; ++attempt) {
    const std::string path = fmt::format("{}/.offprof-scratch-{}-{}", folder, getpid(), attempt);
    const int fd = calls_->open(path, kFlags | O_CREAT | O_EXCL);
    if (fd == -EEXIST) continue;
    if (fd < 0) return fd;
    if (const int unlinked = calls_->unlink(path); unlinked < 0) {
      close(fd);
      return unlinked;
    }
    return fd;
  }
}

void ScratchFile::look_around() {
  const FileSystem system = file_system_of(fd_);
  facts_.file_system = system.name;
  facts_.free_bytes = system.free_bytes;
  // With copy-on-write a rewrite takes new space, which a full disk lacks. If the call is refused, such a
  // write fails.
  if (system.name == "btrfs") calls_->forbid_copy_on_write(fd_);
  if (system.is_memory) {
    facts_.warning = fmt::format("'{}' is on {}, which is memory: the disk tier uses host memory there",
                                 facts_.folder, system.name);
    facts_.why_buffered = system.name + " has no disk below it";
  }
}

void ScratchFile::choose_direct_io(DirectIo wanted) {
  if (wanted == DirectIo::kOff) facts_.why_buffered = "direct I/O was switched off";
  if (facts_.why_buffered.empty()) facts_.why_buffered = try_direct_io();
  facts_.direct_io = facts_.why_buffered.empty();
  if (!facts_.direct_io) facts_.memory_alignment = facts_.offset_alignment = 1;
}

/// Returns an empty string, or the reason why there is no direct I/O. Only a transfer shows whether the file
/// system supports it.
std::string ScratchFile::try_direct_io() {
  const auto refused = [&](const char* what) {
    calls_->set_flags(fd_, kFlags);
    return fmt::format("{} {}", facts_.file_system, what);
  };
  if (calls_->set_flags(fd_, kFlags | O_DIRECT) < 0) return refused("rejects O_DIRECT");
  const DirectAlignment alignment = direct_alignment_of(fd_);
  if (alignment.memory == 0 || alignment.offset == 0) return refused("has no direct I/O for this file");
  constexpr Bytes kMost = kDiskAlignment;
  if (alignment.memory > kMost || alignment.offset > kMost)
    return refused("requires an alignment larger than a page for direct I/O");
  facts_.memory_alignment = alignment.memory;
  facts_.offset_alignment = alignment.offset;
  const AlignedBuffer page = make_aligned_buffer(kMost);
  if (page == nullptr || longest_file_bytes() < kMost) return {};
  std::memset(page.get(), 0, kDiskAlignment);
  const ssize_t written = calls_->write(fd_, page.get(), kMost, 0);
  calls_->truncate(fd_, 0);
  return written == -EINVAL ? refused("rejects a direct write") : "";
}

std::string ScratchFile::grow(Bytes bytes) {
  if (bytes > longest_file_bytes() - bytes_)
    return fmt::format("files of this process may not be longer than {} (`ulimit -f`)",
                       format_bytes(longest_file_bytes()));
  const int result = allocate(bytes);
  if (result >= 0) {
    bytes_ += bytes;
    return {};
  }
  calls_->truncate(fd_, bytes_);  // frees space that the call may have allocated
  const std::string where =
      fmt::format("the disk tier's folder '{}' ({})", facts_.folder, facts_.file_system);
  if (result == -ENOSPC || result == -EDQUOT || result == -EFBIG)
    return fmt::format("no room for another {} in {}: {}", format_bytes(bytes), where,
                       std::strerror(-result));
  throw environment_error(
      fmt::format("cannot allocate {} of disk space in {}: {}", format_bytes(bytes), where,
                  std::strerror(-result)),
      "the disk may be failing: check the kernel's log (dmesg), or give a folder on another disk");
}

int ScratchFile::allocate(Bytes bytes) {
  const int result = calls_->allocate(fd_, bytes_, bytes);
  return result == -EOPNOTSUPP || result == -ENOSYS ? fill_with_zeros(bytes) : result;
}

/// Allocates by writing zeros, for file systems without fallocate(2).
int ScratchFile::fill_with_zeros(Bytes bytes) {
  const Bytes most = std::min<Bytes>(bytes, kMiB);
  const AlignedBuffer zeros = make_aligned_buffer(most);
  if (zeros == nullptr) return -ENOMEM;
  std::memset(zeros.get(), 0, static_cast<std::size_t>(most));
  for (Bytes done = 0; done < bytes;) {
    const ssize_t written = calls_->write(fd_, zeros.get(), std::min(most, bytes - done), bytes_ + done);
    if (written < 0) return static_cast<int>(written);
    if (written < Bytes{kDiskAlignment}) return -ENOSPC;  // a full disk writes less before it fails
    done += written / Bytes{kDiskAlignment} * Bytes{kDiskAlignment};
  }
  return 0;
}

}  // namespace offprof
