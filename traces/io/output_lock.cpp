#include "traces/io/output_lock.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>

#include <cerrno>
#include <cstddef>
#include <filesystem>
#include <functional>

#include "traces/base/error.h"
#include "traces/io/new_file.h"

namespace offprof {
namespace {

/// Returns a name for the file that is the same in every process: of its folder, whose identity does not
/// depend on how it is reached, and of the file in it.
std::string name_of(const std::filesystem::path& file) {
  const std::filesystem::path folder = file.has_parent_path() ? file.parent_path() : ".";
  struct stat status {};
  if (::stat(folder.c_str(), &status) != 0) return {};
  return fmt::format("offprof-output-{:x}-{:x}-{:x}", status.st_dev, status.st_ino,
                     std::hash<std::string>()(file.filename().string()));
}

}  // namespace

/// The claim is a name of a socket in Linux's abstract namespace, which only one process can bind and which
/// the kernel frees when the process ends.
OutputLock::OutputLock(const std::string& path) : socket_(::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)) {
  const Destination to = find_destination(path);
  const std::string name = to.direct ? std::string() : name_of(to.path);
  if (!socket_.valid() || name.empty()) return;
  sockaddr_un address{};
  address.sun_family = AF_UNIX;
  name.copy(address.sun_path + 1, sizeof(address.sun_path) - 1);  // a first byte of 0 means: no file
  const auto size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  if (::bind(socket_.get(), reinterpret_cast<const sockaddr*>(&address), size) == 0 || errno != EADDRINUSE)
    return;
  throw input_error(fmt::format("another process is about to write '{}'", path),
                    "Wait until it has ended, or give each process a file of its own: -o FILE");
}

}  // namespace offprof
