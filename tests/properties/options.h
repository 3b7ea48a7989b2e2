#pragma once

#include <cstdlib>
#include <string>
#include <string_view>

namespace offprof {

/// Returns true if all cases are to run: OFFPROF_TEST_EXTENT=full (scripts/nightly.sh). Otherwise those of a
/// test of every change.
inline bool has_full_extent() {
  const char* const extent = std::getenv("OFFPROF_TEST_EXTENT");
  return extent != nullptr && std::string_view(extent) == "full";
}

/// Options of this test program.
struct Options {
  std::string replay;                         ///< a case file, the only one to run; empty: none
  std::string keep = ".";                     ///< folder for case files
  int steps = has_full_extent() ? 500 : 200;  ///< steps of a long run

  static Options& get() {
    static Options options;
    return options;
  }
};

}  // namespace offprof
