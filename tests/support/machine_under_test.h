#pragma once

#include <string>

namespace offprof {

// Checks of what the machine refuses. They ask the kernel without any code under test. They are the only
// reasons for skipping a test of the disk tier.

/// Returns why the kernel refuses io_uring altogether: it has none, or a filter or a setting forbids it.
/// Empty: it does not.
std::string why_kernel_has_no_io_uring();

/// Returns why a file in `folder` cannot be written with direct I/O; empty: it can.
std::string why_no_direct_io(const std::string& folder);

/// Returns the file system at `folder` if it is not a tmpfs; empty: it is.
std::string why_no_tmpfs(const std::string& folder);

/// Removes, for its lifetime, the calling thread's root right to ignore file permissions. Does nothing for a
/// user without that right.
class ObeyPermissions {
 public:
  ObeyPermissions();
  ~ObeyPermissions();
  ObeyPermissions(const ObeyPermissions&) = delete;
  ObeyPermissions& operator=(const ObeyPermissions&) = delete;
};

}  // namespace offprof
