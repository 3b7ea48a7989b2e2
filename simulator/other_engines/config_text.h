#pragma once

#include <cstddef>
#include <span>
#include <string>
#include <string_view>

namespace offprof {

/// Returns a Python literal of the text, in double quotes. All characters that have a meaning in Python are
/// escaped.
std::string python_string(std::string_view text);

/// Returns a Python list of the texts, one a line, indented by `indent` blanks: `[\n    "a",\n]`. Returns
/// `[]` for no texts.
std::string python_list(std::span<const std::string> texts, std::size_t indent = 0);

}  // namespace offprof
