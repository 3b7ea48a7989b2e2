#pragma once

#include <functional>
#include <string>

namespace offprof {

struct ChildResult {
  bool ok = false;  ///< `work` returned, and the child ended properly
  std::string
      answer;  ///< what `work` returned; else what went wrong: an exception's text, or how the child died
};

/// Runs `work` in a forked child, so that whatever it opens, however badly that goes, leaves this process
/// alone. What the child prints is lost; it does not outlive this process. The caller must have no other
/// thread.
ChildResult run_in_child(const std::function<std::string()>& work);

}  // namespace offprof
