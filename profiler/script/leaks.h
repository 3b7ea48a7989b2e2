#pragma once

#include <map>
#include <optional>
#include <string>
#include <vector>

#include "profiler/recording/recorded_pass.h"
#include "traces/base/units.h"

namespace offprof {

/// Finds memory that each step of a program keeps: later steps then begin with more of it.
class LeakFinder {
 public:
  /// Adds a recorded step. Steps that run in between without being recorded are allowed.
  void add(const RecordedPass& pass);

  /// Describes what allocates `growth` bytes in each step that no later recorded step frees, such as
  /// `aten::mean in forward`; nullopt: it is not known, since fewer than three steps were recorded, or other
  /// memory stays too.
  std::optional<std::string> cause_of(Bytes growth) const;

 private:
  struct Kept {
    std::size_t pass = 0;  ///< in which it was allocated
    Bytes bytes = 0;
    std::string place;  ///< operator, phase, module and source line
  };

  std::size_t passes_ = 0;
  std::map<std::int64_t, Kept> kept_;  ///< by allocation
};

}  // namespace offprof
