#pragma once

#include <cstdio>
#include <cstdlib>

/// Checks a condition that only a bug in offprof can break. If it is false, prints it with file and line and
/// aborts, in every build type.
#define OFFPROF_CHECK(condition)                                                                     \
  do {                                                                                               \
    if (!(condition)) {                                                                              \
      std::fprintf(stderr, "offprof: internal error: %s:%d: check failed: %s\n", __FILE__, __LINE__, \
                   #condition);                                                                      \
      std::abort();                                                                                  \
    }                                                                                                \
  } while (false)
