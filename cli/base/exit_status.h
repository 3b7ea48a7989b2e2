#pragma once

namespace offprof {

/// Exit status of the program. If a signal ends it, the status is 128 + the signal's number.
enum class ExitStatus : int {
  kOk = 0,
  kCheckFailed = 1,  ///< a check of `gate` failed, or `tune` found nothing within the budget
  kBadInput = 2,     ///< bad usage, or a bad input or output file
  kEnvironment = 3,  ///< the machine lacks something
  kInternal = 70,    ///< a bug; EX_SOFTWARE of sysexits.h
};

/// Returns the status of a program that a signal ended.
constexpr ExitStatus status_of_signal(int signal) {
  constexpr int kBase = 128;
  return static_cast<ExitStatus>(kBase + signal);
}

}  // namespace offprof
