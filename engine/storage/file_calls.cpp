#include "engine/storage/file_calls.h"

#include <fcntl.h>
#include <linux/fs.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include <cerrno>

namespace offprof {
namespace {

/// Repeats `call` while signals interrupt it, and returns its result or a negative errno.
template <typename Call>
auto result_of(Call call) {
  auto result = call();
  while (result < 0 && errno == EINTR) result = call();
  return result < 0 ? -errno : result;
}

}  // namespace

int FileCalls::open(const std::string& path, int flags) {
  constexpr mode_t kOwnerOnly = 0600;
  return result_of([&] { return ::open(path.c_str(), flags, kOwnerOnly); });
}

int FileCalls::unlink(const std::string& path) {
  return result_of([&] { return ::unlink(path.c_str()); });
}

int FileCalls::set_flags(int fd, int flags) {
  return result_of([&] { return ::fcntl(fd, F_SETFL, flags); });
}

int FileCalls::forbid_copy_on_write(int fd) {
  int flags = 0;
  const int got = result_of([&] { return ::ioctl(fd, FS_IOC_GETFLAGS, &flags); });
  if (got < 0) return got;
  flags |= FS_NOCOW_FL;
  return result_of([&] { return ::ioctl(fd, FS_IOC_SETFLAGS, &flags); });
}

int FileCalls::allocate(int fd, Bytes offset, Bytes bytes) {
  return result_of([&] { return ::fallocate(fd, 0, offset, bytes); });
}

int FileCalls::truncate(int fd, Bytes bytes) {
  return result_of([&] { return ::ftruncate(fd, bytes); });
}

ssize_t FileCalls::write(int fd, const std::byte* from, Bytes bytes, Bytes offset) {
  return result_of([&] { return ::pwrite(fd, from, static_cast<std::size_t>(bytes), offset); });
}

}  // namespace offprof
