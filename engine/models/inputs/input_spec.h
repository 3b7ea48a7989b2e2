#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// One input of a model: `float32[8,3,96,96]`, `int64[4,128]<512` (integers from 0 to 511), `bool[4,1]`.
struct InputSpec {
  std::string dtype;
  std::vector<std::int64_t> sizes;
  std::optional<std::int64_t> below;  ///< integer dtypes only; nullopt: below 2

  bool operator==(const InputSpec&) const = default;
};

/// Returns the dtypes that a spec may name.
const std::vector<std::string>& input_dtypes();

/// Parses a spec. Throws Error (input) that quotes the spec, says why it is wrong and shows a valid one.
InputSpec parse_input_spec(std::string_view text);

/// Returns the spec in its written form.
std::string to_string(const InputSpec& spec);

/// Returns the specs of a text, one per line. Blank lines and lines that begin with `#` are skipped.
std::vector<std::string> split_input_specs(std::string_view text);

}  // namespace offprof
