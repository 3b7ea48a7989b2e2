#pragma once

#include <string>

#include "tests/support/test_extent.h"

namespace offprof {

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
