#pragma once

#include <algorithm>
#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// Start of the trace note for operators that read values from a virtual GPU, where all values are zero.
inline constexpr std::string_view kValueReadsNote = "values are read back from the device";

inline bool tells_of_value_reads(const std::vector<std::string>& notes) {
  return std::ranges::any_of(notes,
                             [](const std::string& note) { return note.starts_with(kValueReadsNote); });
}

}  // namespace offprof
