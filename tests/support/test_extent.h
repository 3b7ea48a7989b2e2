#pragma once

#include <cstdlib>
#include <string_view>

namespace offprof {

/// Returns true if all cases are to run: OFFPROF_TEST_EXTENT=full (scripts/nightly.sh). Otherwise those of a
/// test of every change.
inline bool has_full_extent() {
  const char* const extent = std::getenv("OFFPROF_TEST_EXTENT");
  return extent != nullptr && std::string_view(extent) == "full";
}

}  // namespace offprof
