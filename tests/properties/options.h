#pragma once

#include <string>

namespace offprof {

/// What this test program was called with.
struct Options {
  std::string replay;      ///< a case file to run, and nothing else; empty: none
  std::string keep = ".";  ///< the folder for case files
  int steps = 500;         ///< of a long run

  static Options& get() {
    static Options options;
    return options;
  }
};

}  // namespace offprof
