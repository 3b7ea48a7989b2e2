#pragma once

namespace offprof {

/// What the program exits with. A signal ends it with 128 + its number.
enum class ExitStatus : int {
  kOk = 0,
  kGateFailed = 1,   ///< a check of `gate` failed, or `tune` found nothing within the budget
  kBadInput = 2,     ///< bad usage, or a bad input or output file
  kEnvironment = 3,  ///< the machine lacks something
  kInternal = 70,    ///< a bug; EX_SOFTWARE of sysexits.h
};

}  // namespace offprof
