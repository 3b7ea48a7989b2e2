#pragma once

#include <fmt/format.h>

#include <cstdint>
#include <iterator>
#include <limits>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "traces/io/json_access.h"

namespace offprof {

inline constexpr std::int64_t kMaxIndex = std::numeric_limits<std::int32_t>::max();
inline constexpr std::int64_t kMaxInteger = std::numeric_limits<std::int64_t>::max();
inline constexpr std::int64_t kMaxVersion = std::numeric_limits<std::uint32_t>::max();

inline std::string quoted(const std::string& text) {
  return dump_json(text, -1);
}

template <typename... Args>
void append(std::string& out, fmt::format_string<Args...> format, Args&&... args) {
  fmt::format_to(std::back_inserter(out), format, std::forward<Args>(args)...);
}

/// Appends a list `[1,2,3]` of the values that `project` returns for the elements.
template <typename Range, typename Project>
void append_column(std::string& out, const Range& range, const Project& project) {
  out += '[';
  const char* separator = "";
  for (const auto& element : range) {
    append(out, "{}{}", separator, project(element));
    separator = ",";
  }
  out += ']';
}

/// Returns the letters for the values of an enumeration that `project` returns for the elements.
template <typename Range, typename Project>
std::string letters(const Range& range, std::string_view alphabet, const Project& project) {
  std::string text;
  text.reserve(range.size());
  for (const auto& element : range) text += alphabet.at(static_cast<std::size_t>(project(element)));
  return text;
}

/// Returns the values that the letters of a string stand for.
template <typename Enum>
std::vector<Enum> read_letters(const JsonValue& json, std::string_view alphabet) {
  const std::string& text = json.as_string();
  std::vector<Enum> values;
  values.reserve(text.size());
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto index = alphabet.find(text[i]);
    if (index == std::string_view::npos) {
      json.fail(fmt::format("letter {} is {}, not one of {}", i, quoted(text.substr(i, 1)), alphabet));
    }
    values.push_back(static_cast<Enum>(index));
  }
  return values;
}

inline void require_length(const JsonValue& column, std::size_t length) {
  if (column.size() == length) return;
  column.fail(fmt::format("has {} elements, but the other columns have {}", column.size(), length));
}

}  // namespace offprof
