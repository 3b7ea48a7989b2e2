#pragma once

#include <optional>
#include <set>
#include <string>
#include <vector>

#include "engine/devices/virtual_gpu/state/execution_state.h"

namespace offprof {

/// Requests that the stand-in libraries could not answer as CUDA does.
class UnsupportedCalls {
 public:
  /// `execution` must outlive it.
  explicit UnsupportedCalls(ExecutionState& execution) : state_(execution) {}

  /// Records the call of a function that is not implemented, once, and passes its name to the options' log.
  void note_unwritten(const char* function);
  /// Records the request of a size that only the real library knows.
  void note_unknown_size(const char* what);
  /// Records that the program chose a device that does not exist.
  void note_missing_device(int device);

  /// See VirtualGpu.
  std::vector<std::string> unwritten_calls() const;
  std::vector<std::string> take_unknown_sizes();
  std::optional<int> missing_device() const;

 private:
  ExecutionState& state_;
  std::vector<std::string> unwritten_;
  std::set<std::string> unknown_sizes_;
  std::optional<int> missing_device_;
};

}  // namespace offprof
