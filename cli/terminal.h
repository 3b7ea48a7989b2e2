#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace offprof {

/// What the two output streams are. The default is that of a pipe or a file.
struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool color_refused = false;  ///< NO_COLOR is set and not empty (no-color.org), or TERM is `dumb`
  std::size_t width = 100;     ///< columns that text may take
};

/// Asks the system about standard output and standard error. COLUMNS, where set, beats the terminal's own
/// width.
Terminal detect_terminal();

enum class ColorWhen { kAuto, kAlways, kNever };

/// The meaning of a piece of text; a terminal shows it as a colour, and the words say it too.
enum class Tone { kPlain, kStrong, kFaint, kGood, kWarning, kBad };

/// How to write: how wide, and whether in colour.
struct Page {
  std::size_t width = 100;
  bool color = false;

  /// `text` in the tone's colour, or as it is.
  std::string paint(Tone tone, std::string_view text) const;
};

/// To the beginning of a terminal's line, which is wiped.
inline constexpr std::string_view kWipeLine = "\r\033[K";

/// `text` as a terminal may get it: of all that it would obey only line breaks, Page::paint's colours and
/// kWipeLine; the rest is shown as printable() writes it.
std::string for_terminal(std::string_view text);

/// Whether a stream gets colours.
bool wants_color(ColorWhen when, bool is_terminal, const Terminal& terminal);

/// Columns that UTF-8 `text` takes, one per code point: the text that offprof prints has no wide characters.
std::size_t display_width(std::string_view text);

/// `text` cut to `width` columns, the cut shown as `…`.
std::string cut_to_width(std::string_view text, std::size_t width);

/// Breaks `text`, whose first line begins in column `indent`, at blanks so that no line passes column
/// `width`; the lines after the first are indented by `indent` blanks. Line breaks in `text` stay.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

}  // namespace offprof
