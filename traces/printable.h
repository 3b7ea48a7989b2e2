#pragma once

#include <string>
#include <string_view>

namespace offprof {

/// Whether a terminal, a page or a viewer shows every character of UTF-8 `text` instead of obeying it. Not
/// so: control characters (line breaks and tabs among them; escape sequences begin with one), marks that turn
/// the direction of writing, invisible characters and line separators, and bytes that are no UTF-8.
bool is_printable(std::string_view text);

/// `text` with each such character written as JSON writes it, `\u001b`, and each byte that is no UTF-8 as
/// U+FFFD. Thus it may stand on a line of its own, in a cell of a table, in quotes; and a JSON text that
/// holds such characters in its strings still says the same. `line_breaks_stay`: each `\n` is kept.
std::string printable(std::string_view text, bool line_breaks_stay = false);

}  // namespace offprof
