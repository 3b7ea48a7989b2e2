#pragma once

#include <string>
#include <string_view>

namespace offprof {

/// Returns true if terminals and viewers show every character of the UTF-8 `text` and interpret none. Not
/// printable are: control characters (including line breaks, tabs and the start of escape sequences), marks
/// that change the direction of writing, invisible characters, line separators, and bytes that are not UTF-8.
bool is_printable(std::string_view text);

/// Returns `text` with each such character replaced by its JSON escape, like `\u001b`, and each byte that is
/// not UTF-8 replaced by U+FFFD. The result may be used as a line, in a table cell or in quotes. A JSON text
/// with such characters in its strings keeps its meaning. `line_breaks_stay`: `\n` is kept.
std::string printable(std::string_view text, bool line_breaks_stay = false);

}  // namespace offprof
