#pragma once

#include <sys/types.h>

#include <cstddef>
#include <string>

#include "traces/base/units.h"

namespace offprof {

/// System calls that create a scratch file and allocate its space. Each returns the result of the call or a
/// negative errno. A call that a signal interrupted is repeated.
class FileCalls {
 public:
  virtual ~FileCalls() = default;
  virtual int open(const std::string& path, int flags);
  virtual int unlink(const std::string& path);
  virtual int set_flags(int fd, int flags);  ///< fcntl(2) F_SETFL
  /// Makes writes go to the space that the file already has instead of new space. Only for an empty file.
  virtual int forbid_copy_on_write(int fd);
  virtual int allocate(int fd, Bytes offset, Bytes bytes);
  virtual int truncate(int fd, Bytes bytes);
  virtual ssize_t write(int fd, const std::byte* from, Bytes bytes, Bytes offset);
};

}  // namespace offprof
