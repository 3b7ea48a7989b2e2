#pragma once

#include <string>

#include "traces/base/descriptor.h"

namespace offprof {

/// Claims a file for this process, so that two processes do not write it at the same time, and the second
/// does not replace the result of the first. The claim ends with this object, or with the process, however it
/// ends, and leaves nothing behind. It does not reach beyond the machine's network namespace (a container may
/// have its own).
///
/// A forked child shares the claim.
class OutputLock {
 public:
  /// `path` need not exist. Throws Error (input) if another process has claimed it.
  explicit OutputLock(const std::string& path);

 private:
  Descriptor socket_;
};

}  // namespace offprof
