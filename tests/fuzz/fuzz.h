#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/base/printable.h"

/// Entry point of libFuzzer; replay_corpus.cpp also calls it. Called with each input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace offprof {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// True if a reader has accepted the input. read_or_refuse sets it; replay_corpus.cpp reads it and clears it
/// before each input. A variable is needed because libFuzzer's entry point cannot return this result.
inline bool input_is_accepted = false;
/// Why the last input that was refused was refused.
inline std::string last_refusal;

/// Calls `read`, which may reject its input with an Error that the user can fix (exit status 2). Any other
/// exception is a finding, and so is every report of a sanitizer or a check. Always returns 0, as libFuzzer
/// requires.
template <typename Read>
int read_or_refuse(const Read& read) {
  try {
    read();
    input_is_accepted = true;
  } catch (const Error& error) {
    OFFPROF_CHECK(error.kind() == ErrorKind::kInput);
    OFFPROF_CHECK(std::string_view(error.what()).size() > 0);
    last_refusal = error.what();
  }
  return 0;
}

/// Checks that names from files appear in a report only as printable text, each within one line.
inline void check_shown(const std::string& report) {
  OFFPROF_CHECK(printable(report, true) == report);
}

}  // namespace offprof
