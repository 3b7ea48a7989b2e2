#pragma once

#include <string>

namespace offprof {

// What the machine that runs a test refuses by itself, asked of the kernel without any code that is tested:
// the only reasons for which a test of the disk tier may be skipped.

/// Empty, or how the kernel refuses io_uring altogether: it has none, or a filter or a setting forbids it.
std::string why_kernel_has_no_io_uring();

/// Empty, or why a file in `folder` cannot be written to directly.
std::string why_no_direct_io(const std::string& folder);

/// Empty, or which file system lies at `folder` in the place of a tmpfs.
std::string why_no_tmpfs(const std::string& folder);

/// Takes from the calling thread, while it lives, root's right to pass over the permissions of files. Does
/// nothing for a user who has no such right.
class ObeyPermissions {
 public:
  ObeyPermissions();
  ~ObeyPermissions();
  ObeyPermissions(const ObeyPermissions&) = delete;
  ObeyPermissions& operator=(const ObeyPermissions&) = delete;
};

}  // namespace offprof
