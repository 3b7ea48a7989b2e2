#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "traces/units.h"

namespace offprof {

/// The system calls that make a scratch file and give it space. Each returns what the call does, or a
/// negative errno; a call that a signal interrupted is made again.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int open(const std::string& path, int flags);
  virtual int unlink(const std::string& path);
  virtual int set_flags(int fd, int flags);  ///< fcntl(2) F_SETFL
  /// What is written goes where the file has space already, and not to a new place; only for an empty file.
  virtual int forbid_copy_on_write(int fd);
  virtual int allocate(int fd, Bytes offset, Bytes bytes);
  virtual int truncate(int fd, Bytes bytes);
  virtual ssize_t write(int fd, const std::byte* from, Bytes bytes, Bytes offset);
};

}  // namespace offprof
