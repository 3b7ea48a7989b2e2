#pragma once

#include <cstddef>
#include <string>
#include <string_view>

namespace offprof {

/// Properties of the two output streams. The defaults are those of a pipe or a file.
struct Terminal {
  bool out_is_terminal = false;
  bool err_is_terminal = false;
  bool color_refused = false;  ///< NO_COLOR is set and not empty (no-color.org), or TERM is `dumb`
  std::size_t width = 100;     ///< columns that text may use
};

/// Detects the properties of standard output and standard error. If COLUMNS is set, it takes precedence over
/// the terminal's own width.
Terminal detect_terminal();

enum class ColorWhen { kAuto, kAlways, kNever };

/// The meaning of a piece of text. A terminal shows it as a colour; the words alone carry it as well.
enum class Tone { kPlain, kStrong, kFaint, kGood, kWarning, kBad };

/// Output settings: width, colour, and whether details are shown (`-v`).
struct Page {
  std::size_t width = 100;
  bool color = false;
  bool details = false;

  /// Returns `text` in the tone's colour, or unchanged if colour is off.
  std::string paint(Tone tone, std::string_view text) const;
};

/// Moves to the beginning of a terminal's line and erases the line.
inline constexpr std::string_view kWipeLine = "\r\033[K";

/// Makes `text` safe for a terminal. The only control codes it keeps are line breaks, Page::paint's colours
/// and kWipeLine; it shows the others as printable() writes them.
std::string for_terminal(std::string_view text);

/// Returns true if a stream gets colours.
bool wants_color(ColorWhen when, bool is_terminal, const Terminal& terminal);

/// Returns the number of columns of UTF-8 `text`, one per code point: the text that offprof prints has no
/// wide characters.
std::size_t display_width(std::string_view text);

/// Returns `text` cut to `width` columns, with `…` at the cut.
std::string cut_to_width(std::string_view text, std::size_t width);

/// Breaks `text`, whose first line begins in column `indent`, at blanks so that no line exceeds column
/// `width`. Later lines are indented by `indent` blanks. Line breaks in `text` are kept.
std::string wrap(std::string_view text, std::size_t width, std::size_t indent);

/// Returns an indented line with a faint label and `text` beside it, wrapped to the page's width. Returns an
/// empty string for an empty text.
std::string labelled(std::string_view label, std::string_view text, const Page& page,
                     Tone tone = Tone::kPlain);

}  // namespace offprof
