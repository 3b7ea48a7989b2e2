#include "tests/support/machine_under_test.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <linux/capability.h>
#include <linux/io_uring.h>
#include <linux/magic.h>
#include <sys/syscall.h>
#include <sys/vfs.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <stdexcept>

namespace offprof {
namespace {

constexpr std::size_t kPage = 4096;

/// Capability sets of one call. The first element holds the file capabilities.
using Capabilities = std::array<__user_cap_data_struct, _LINUX_CAPABILITY_U32S_3>;

constexpr unsigned kIgnoresPermissions = (1U << CAP_DAC_OVERRIDE) | (1U << CAP_DAC_READ_SEARCH);

Capabilities capabilities() {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  Capabilities capabilities{};
  if (syscall(SYS_capget, &header, capabilities.data()) != 0)
    throw std::runtime_error(std::string("capget: ") + std::strerror(errno));
  return capabilities;
}

void set_effective(const Capabilities& capabilities) {
  __user_cap_header_struct header{_LINUX_CAPABILITY_VERSION_3, 0};
  if (syscall(SYS_capset, &header, capabilities.data()) != 0)
    throw std::runtime_error(std::string("capset: ") + std::strerror(errno));
}

bool is_tmpfs(const std::string& folder) {
  struct statfs facts {};
  return ::statfs(folder.c_str(), &facts) == 0 && facts.f_type == TMPFS_MAGIC;
}

}  // namespace

std::string why_kernel_has_no_io_uring() {
  io_uring_params parameters{};
  const long ring = syscall(SYS_io_uring_setup, 1, &parameters);
  if (ring >= 0) {
    ::close(static_cast<int>(ring));
    return {};
  }
  const bool is_absent = errno == ENOSYS || errno == EPERM || errno == EACCES;
  return is_absent ? fmt::format("the kernel refuses io_uring: {}", std::strerror(errno)) : std::string();
}

std::string why_no_direct_io(const std::string& folder) {
  if (is_tmpfs(folder)) return folder + " is on tmpfs, which has no disk below it";
  const int file = ::open(folder.c_str(), O_RDWR | O_CLOEXEC | O_TMPFILE | O_DIRECT, 0600);
  if (file < 0)
    return errno == EINVAL ? fmt::format("the file system of {} rejects O_DIRECT", folder) : std::string();
  alignas(kPage) static const std::array<std::byte, kPage> page{};
  const bool is_refused = ::pwrite(file, page.data(), page.size(), 0) < 0 && errno == EINVAL;
  ::close(file);
  return is_refused ? fmt::format("the file system of {} rejects a direct write", folder) : std::string();
}

std::string why_no_tmpfs(const std::string& folder) {
  return is_tmpfs(folder) ? std::string() : folder + " is not a tmpfs";
}

ObeyPermissions::ObeyPermissions() {
  Capabilities now = capabilities();
  now[0].effective &= ~kIgnoresPermissions;
  set_effective(now);
}

ObeyPermissions::~ObeyPermissions() {
  Capabilities now = capabilities();
  now[0].effective |= now[0].permitted & kIgnoresPermissions;
  set_effective(now);
}

}  // namespace offprof
