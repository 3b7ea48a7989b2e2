#pragma once

#include <functional>
#include <string>

namespace offprof {

struct ChildResult {
  bool ok = false;  ///< `work` returned and the child exited normally
  /// The return value of `work`. On failure: the exception's text, or a description of the child's death.
  std::string answer;
};

/// Runs `work` in a forked child, so that libraries it opens cannot damage this process, even if they crash.
/// The child's output is discarded. The child is killed when this process ends. The caller must have no other
/// thread.
ChildResult run_in_child(const std::function<std::string()>& work);

}  // namespace offprof
