#pragma once

// RapidJSON's reader with our own function for exact numbers. RapidJSON's function reads beyond a table of
// powers if a number has hundreds of zeros after its point, and shifts by too much if the number is zero with
// an exponent (internal/strtod.h of RapidJSON 1.1.0). Only json_parser.cpp includes this file.
// NOLINTNEXTLINE(readability-identifier-naming): RapidJSON's name
#define StrtodFullPrecision StrtodFullPrecisionOfRapidJson
#include <rapidjson/internal/strtod.h>
#undef StrtodFullPrecision

#include <charconv>
#include <limits>
#include <string>
#include <string_view>
#include <system_error>

namespace rapidjson::internal {

/// Returns the number nearest to 0.DIGITS times ten to the power of `point` + `exponent`; infinity if it is
/// too large. `approximate` times ten to the power of `power` is the same number, except for digits that were
/// cut off.
// NOLINTNEXTLINE(readability-identifier-naming): the name that the reader calls
inline double StrtodFullPrecision(double approximate, int power, const char* digits, size_t length,
                                  size_t point, int exponent) {
  double value = 0;
  if (StrtodFast(approximate, power, &value)) return value;
  const std::string_view all(digits, length);
  const std::size_t zeros = all.find_first_not_of('0');
  if (zeros == std::string_view::npos) return 0;
  const auto magnitude = static_cast<std::int64_t>(point) - static_cast<std::int64_t>(zeros) + exponent;
  const std::string text = "0." + std::string(all.substr(zeros)) + "e" + std::to_string(magnitude);
  const auto result = std::from_chars(text.data(), text.data() + text.size(), value);
  if (result.ec != std::errc::result_out_of_range) return value;
  return magnitude > 0 ? std::numeric_limits<double>::infinity() : 0;
}

}  // namespace rapidjson::internal

#include <rapidjson/reader.h>
