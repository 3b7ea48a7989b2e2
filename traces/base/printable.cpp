#include "traces/base/printable.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <utility>

namespace offprof {
namespace {

/// Character of a text, or a byte that is not part of one.
struct Character {
  char32_t code = 0;
  std::size_t bytes = 1;
  bool is_utf8 = true;
};

constexpr Character kNoUtf8 = {0, 1, false};

unsigned to_byte(char c) {
  return static_cast<unsigned char>(c);
}

/// Returns the number of bytes that follow a leading byte; 4 if `lead` is not one (RFC 3629).
std::size_t bytes_after(unsigned lead) {
  return lead < 0x80U ? 0 : lead < 0xc2U ? 4 : lead < 0xe0U ? 1 : lead < 0xf0U ? 2 : lead < 0xf5U ? 3 : 4;
}

/// Returns true if `code` is a character whose shortest encoding has this many bytes.
bool is_shortest(char32_t code, std::size_t bytes) {
  constexpr std::array<char32_t, 5> kLeast = {0, 0, 0x80, 0x800, 0x10000};
  return code >= kLeast.at(bytes) && code <= 0x10ffff && (code < 0xd800 || code > 0xdfff);
}

/// Returns the first character of `text`, which is not empty.
Character first_of(std::string_view text) {
  const unsigned lead = to_byte(text.front());
  const std::size_t more = bytes_after(lead);
  if (more == 0) return {lead, 1, true};
  if (more >= text.size() || more > 3) return kNoUtf8;
  char32_t code = lead & (0x3fU >> more);
  for (const char c : text.substr(1, more)) {
    if ((to_byte(c) & 0xc0U) != 0x80U) return kNoUtf8;
    code = code << 6U | (to_byte(c) & 0x3fU);
  }
  return is_shortest(code, more + 1) ? Character{code, more + 1, true} : kNoUtf8;
}

/// Returns true for Unicode's categories Cc, Zl and Zp, and for the characters of Cf that are invisible or
/// change the direction of writing.
bool is_obeyed(char32_t code) {
  constexpr auto kRanges = std::to_array<std::pair<char32_t, char32_t>>({{0x0000, 0x001f},
                                                                         {0x007f, 0x009f},
                                                                         {0x00ad, 0x00ad},
                                                                         {0x061c, 0x061c},
                                                                         {0x180e, 0x180e},
                                                                         {0x200b, 0x200f},
                                                                         {0x2028, 0x202e},
                                                                         {0x2060, 0x206f},
                                                                         {0xfeff, 0xfeff},
                                                                         {0xfff9, 0xfffb}});
  return std::ranges::any_of(kRanges,
                             [&](const auto& range) { return code >= range.first && code <= range.second; });
}

/// Returns true for printable ASCII. Most text is plain ASCII, and its bytes need no decoding.
bool is_plain(char c) {
  return to_byte(c) >= 0x20U && to_byte(c) < 0x7fU;
}

/// Removes the plain characters from the start of `text` and returns them.
std::string_view take_plain(std::string_view& text) {
  const auto strange = std::ranges::find_if_not(text, is_plain);
  const std::string_view plain = text.substr(0, static_cast<std::size_t>(strange - text.begin()));
  text.remove_prefix(plain.size());
  return plain;
}

}  // namespace

bool is_printable(std::string_view text) {
  while (true) {
    take_plain(text);
    if (text.empty()) return true;
    const Character character = first_of(text);
    if (!character.is_utf8 || is_obeyed(character.code)) return false;
    text.remove_prefix(character.bytes);
  }
}

std::string printable(std::string_view text, bool line_breaks_stay) {
  std::string shown;
  shown.reserve(text.size());
  while (true) {
    shown += take_plain(text);
    if (text.empty()) return shown;
    const Character character = first_of(text);
    const bool stays = line_breaks_stay && character.code == '\n';
    if (!character.is_utf8) {
      shown += "\ufffd";
    } else if (is_obeyed(character.code) && !stays) {
      fmt::format_to(std::back_inserter(shown), "\\u{:04x}", static_cast<std::uint32_t>(character.code));
    } else {
      shown += text.substr(0, character.bytes);
    }
    text.remove_prefix(character.bytes);
  }
}

}  // namespace offprof
