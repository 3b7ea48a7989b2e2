#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

#include "traces/check.h"
#include "traces/error.h"
#include "traces/printable.h"

/// What libFuzzer, or the replay of the corpora, calls with each input.
extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size);

namespace offprof {

inline std::string_view as_text(const std::uint8_t* data, std::size_t size) {
  return {reinterpret_cast<const char*>(data), size};
}

/// Whether a reader has taken the input: set by read_or_refuse, for replay_corpus.cpp, which clears it before
/// each input. libFuzzer's entry point has no other way to tell.
inline bool input_is_accepted = false;

/// Calls `read`, which may refuse its input by an Error that is the user's to mend (exit status 2). Any other
/// exception is a finding, and so is all that a sanitizer or a check says. Always 0, as libFuzzer wants it.
template <typename Read>
int read_or_refuse(const Read& read) {
  try {
    read();
    input_is_accepted = true;
  } catch (const Error& error) {
    OFFPROF_CHECK(error.kind() == ErrorKind::kInput);
    OFFPROF_CHECK(std::string_view(error.what()).size() > 0);
  }
  return 0;
}

/// What a report shows of names in files must be text, each on its line.
inline void check_shown(const std::string& report) {
  OFFPROF_CHECK(printable(report, true) == report);
}

}  // namespace offprof
