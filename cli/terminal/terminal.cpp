#include "cli/terminal/terminal.h"

#include <sys/ioctl.h>
#include <unistd.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <cstring>

#include "traces/base/printable.h"

namespace offprof {
namespace {

constexpr std::size_t kLabelColumn = 13;
constexpr std::size_t kNarrowest = 40;
constexpr std::size_t kWidest = 200;

std::size_t width_of_environment() {
  const char* columns = std::getenv("COLUMNS");
  std::size_t width = 0;
  if (columns != nullptr) std::from_chars(columns, columns + std::strlen(columns), width);
  return width;
}

std::size_t width_of_terminal() {
  winsize size{};
  return ioctl(STDOUT_FILENO, TIOCGWINSZ, &size) == 0 ? size.ws_col : 0;
}

bool is_set(const char* name) {
  const char* value = std::getenv(name);
  return value != nullptr && *value != '\0';
}

bool begins_code_point(char byte) {
  return (static_cast<unsigned char>(byte) & 0xC0U) != 0x80U;
}

std::string_view color_code(Tone tone) {
  switch (tone) {
    case Tone::kPlain:
      return "";
    case Tone::kStrong:
      return "\033[1m";
    case Tone::kFaint:
      return "\033[2m";
    case Tone::kGood:
      return "\033[32m";
    case Tone::kWarning:
      return "\033[33m";
    case Tone::kBad:
      return "\033[1;31m";
  }
  return "";
}

constexpr std::string_view kPlainAgain = "\033[0m";

/// Returns the control code of ours with which `text` begins; empty if there is none.
std::string_view leading_code(std::string_view text) {
  for (const std::string_view code : {kWipeLine, kPlainAgain})
    if (text.starts_with(code)) return code;
  for (const Tone tone : {Tone::kStrong, Tone::kFaint, Tone::kGood, Tone::kWarning, Tone::kBad})
    if (text.starts_with(color_code(tone))) return color_code(tone);
  return {};
}

}  // namespace

Terminal detect_terminal() {
  Terminal terminal;
  terminal.out_is_terminal = isatty(STDOUT_FILENO) == 1;
  terminal.err_is_terminal = isatty(STDERR_FILENO) == 1;
  const char* term = std::getenv("TERM");
  terminal.color_refused = is_set("NO_COLOR") || (term != nullptr && std::strcmp(term, "dumb") == 0);
  std::size_t width = width_of_environment();
  if (width == 0 && terminal.out_is_terminal) width = width_of_terminal();
  if (width != 0) terminal.width = std::clamp(width, kNarrowest, kWidest);
  return terminal;
}

std::string Page::paint(Tone tone, std::string_view text) const {
  if (!color || tone == Tone::kPlain || text.empty()) return std::string(text);
  return std::string(color_code(tone)).append(text).append(kPlainAgain);
}

std::string for_terminal(std::string_view text) {
  std::string shown;
  std::size_t begin = 0;
  const auto next = [&](std::size_t from) { return text.find_first_of("\r\033", from); };
  for (std::size_t at = next(0); at != std::string_view::npos;) {
    const std::string_view code = leading_code(text.substr(at));
    if (!code.empty()) {
      shown.append(printable(text.substr(begin, at - begin), true)).append(code);
      begin = at + code.size();
    }
    at = next(std::max(begin, at + 1));
  }
  return shown.append(printable(text.substr(begin), true));
}

bool wants_color(ColorWhen when, bool is_terminal, const Terminal& terminal) {
  if (when != ColorWhen::kAuto) return when == ColorWhen::kAlways;
  return is_terminal && !terminal.color_refused;
}

std::size_t display_width(std::string_view text) {
  return static_cast<std::size_t>(std::ranges::count_if(text, begins_code_point));
}

std::string cut_to_width(std::string_view text, std::size_t width) {
  if (display_width(text) <= width) return std::string(text);
  if (width == 0) return {};
  std::size_t end = 0;
  for (std::size_t columns = 0; end < text.size(); ++end) {
    if (begins_code_point(text[end]) && ++columns == width) break;
  }
  return std::string(text.substr(0, end)) + "…";
}

std::string wrap(std::string_view text, std::size_t width, std::size_t indent) {
  std::string result;
  std::size_t column = indent;
  const auto break_line = [&] {
    result.append("\n").append(indent, ' ');
    column = indent;
  };
  while (!text.empty()) {
    const std::size_t end = std::min(text.find_first_of(" \n"), text.size());
    const std::size_t word_width = display_width(text.substr(0, end));
    if (column > indent && column + 1 + word_width > width) break_line();
    if (column > indent) {
      result += ' ';
      ++column;
    }
    result += text.substr(0, end);
    column += word_width;
    if (end < text.size() && text[end] == '\n') break_line();
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return result;
}

std::string labelled(std::string_view label, std::string_view text, const Page& page, Tone tone) {
  if (text.empty()) return "";
  const std::string padding(kLabelColumn - std::min(kLabelColumn, label.size() + 2), ' ');
  return "  " + page.paint(Tone::kFaint, label) + padding +
         page.paint(tone, wrap(text, page.width, kLabelColumn)) + "\n";
}

}  // namespace offprof
