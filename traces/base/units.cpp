#include "traces/base/units.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <optional>
#include <span>

#include "traces/base/error.h"

namespace offprof {
namespace {

struct Unit {
  std::string_view suffix;
  std::int64_t factor;
};

constexpr Bytes kKilo = 1000;
constexpr Bytes kMega = 1000 * kKilo;
constexpr Bytes kGiga = 1000 * kMega;
constexpr Bytes kTera = 1000 * kGiga;
constexpr Bytes kTiB = 1024 * kGiB;

constexpr auto kByteUnits = std::to_array<Unit>({
    {"", 1},
    {"B", 1},
    {"K", kKiB},
    {"k", kKiB},
    {"KiB", kKiB},
    {"kB", kKilo},
    {"KB", kKilo},
    {"M", kMiB},
    {"MiB", kMiB},
    {"MB", kMega},
    {"G", kGiB},
    {"GiB", kGiB},
    {"GB", kGiga},
    {"T", kTiB},
    {"TiB", kTiB},
    {"TB", kTera},
});

constexpr auto kTimeUnits = std::to_array<Unit>({
    {"ns", 1},
    {"us", 1000},
    {"µs", 1000},
    {"ms", 1'000'000},
    {"s", 1'000'000'000},
});

constexpr auto kByteHint =
    "Write a count (4096) or a number with a unit: K M G T and KiB MiB GiB TiB are powers of 1024, "
    "kB MB GB TB are powers of 1000; for example 64KiB, 1.5GiB, 25GB.";
constexpr auto kRateHint = "Write a size and /s, such as 25GB/s or 900MiB/s.";
constexpr auto kDurationHint =
    "Write a number with its unit: ns, us, ms or s, such as 250ns, 10us, 1.5ms, 2s.";

/// Number split into its whole part, its fraction in [0, 1) and the text after it.
struct Number {
  std::int64_t whole = 0;
  double fraction = 0;
  bool has_fraction = false;
  std::string_view rest;
};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

std::size_t count_digits(std::string_view text) {
  std::size_t count = 0;
  while (count < text.size() && is_digit(text[count])) ++count;
  return count;
}

/// Splits `text`. Returns nullopt if it does not begin with a number, or if its whole part does not fit into
/// 64 bits; `overflow` is set in the latter case.
std::optional<Number> cut_number(std::string_view text, bool& overflow) {
  Number number;
  const std::size_t digits = count_digits(text);
  if (digits == 0) return std::nullopt;
  const auto result = std::from_chars(text.data(), text.data() + digits, number.whole);
  overflow = result.ec == std::errc::result_out_of_range;
  if (overflow) return std::nullopt;
  text.remove_prefix(digits);
  if (text.size() > 1 && text[0] == '.' && is_digit(text[1])) {
    const std::size_t end = 1 + count_digits(text.substr(1));
    std::from_chars(text.data(), text.data() + end, number.fraction);
    number.has_fraction = true;
    text.remove_prefix(end);
  }
  number.rest = text;
  return number;
}

std::string_view trim(std::string_view text) {
  while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  while (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  return text;
}

std::optional<std::int64_t> scale(const Number& number, std::int64_t factor) {
  std::int64_t whole = 0;
  if (__builtin_mul_overflow(number.whole, factor, &whole)) return std::nullopt;
  const auto part = static_cast<std::int64_t>(std::llround(number.fraction * static_cast<double>(factor)));
  if (__builtin_add_overflow(whole, part, &whole)) return std::nullopt;
  return whole;
}

const Unit* find_unit(std::span<const Unit> units, std::string_view suffix) {
  for (const Unit& unit : units) {
    if (unit.suffix == suffix) return &unit;
  }
  return nullptr;
}

bool means_bits(std::string_view suffix) {
  return suffix.ends_with('b');
}

/// Parses `text` as a number and one of `units`. `what` and `hint` are for the error.
std::int64_t parse_quantity(std::string_view text, std::span<const Unit> units, const char* what,
                            const char* hint) {
  const auto refuse = [&](const std::string& why) {
    return input_error(fmt::format("'{}' is not a {}: {}", text, what, why), hint);
  };
  const std::string_view body = trim(text);
  if (body.empty()) throw refuse("it is empty");
  if (body.front() == '-') throw refuse("it is negative");
  bool overflow = false;
  const auto number = cut_number(body, overflow);
  if (overflow) throw refuse("it is too large");
  if (!number) throw refuse("it does not begin with a number");
  const std::string_view suffix = trim(number->rest);
  const Unit* unit = find_unit(units, suffix);
  if (unit == nullptr && means_bits(suffix)) throw refuse("a lower-case b means bits; B means bytes");
  if (unit == nullptr)
    throw refuse(suffix.empty() ? "it has no unit" : fmt::format("'{}' is not a unit", suffix));
  if (unit->factor == 1 && number->has_fraction) throw refuse("it has a fraction of the smallest unit");
  const auto value = scale(*number, unit->factor);
  if (!value) throw refuse("it is too large");
  return *value;
}

/// Formats three significant digits of a value in [0, limit of the unit); whole numbers from 100 on.
std::string three_digits(double value) {
  if (value < 9.995) return fmt::format("{:.2f}", value);
  if (value < 99.95) return fmt::format("{:.1f}", value);
  return fmt::format("{:.0f}", value);
}

/// Divides by `base` until the rounded value is below it or no unit is left. The first unit is printed as a
/// whole number.
std::string format_scaled(double value, double base, std::span<const std::string_view> units) {
  std::size_t unit = 0;
  while (unit + 1 < units.size() && std::round(value) >= base) {
    value /= base;
    ++unit;
  }
  return fmt::format("{} {}", unit == 0 ? fmt::format("{:.0f}", value) : three_digits(value), units[unit]);
}

constexpr auto kByteNames = std::to_array<std::string_view>({"B", "KiB", "MiB", "GiB", "TiB", "PiB", "EiB"});
constexpr auto kTimeNames = std::to_array<std::string_view>({"ns", "us", "ms", "s"});
constexpr auto kRateNames = std::to_array<std::string_view>({"B/s", "kB/s", "MB/s", "GB/s", "TB/s", "PB/s"});

std::string_view sign_of(std::int64_t value) {
  return value < 0 ? "-" : "";
}

double magnitude(std::int64_t value) {
  return std::fabs(static_cast<double>(value));
}

}  // namespace

Bytes parse_bytes(std::string_view text) {
  return parse_quantity(text, kByteUnits, "size in bytes", kByteHint);
}

double parse_rate(std::string_view text) {
  const std::string_view body = trim(text);
  if (!body.ends_with("/s"))
    throw input_error(fmt::format("'{}' is not a rate: it does not end in /s", text), kRateHint);
  const Bytes bytes = parse_quantity(body.substr(0, body.size() - 2), kByteUnits, "size in bytes", kByteHint);
  if (bytes == 0) throw input_error(fmt::format("'{}' is not a rate: it is 0", text), kRateHint);
  return static_cast<double>(bytes);
}

Nanoseconds parse_duration(std::string_view text) {
  return parse_quantity(text, kTimeUnits, "duration", kDurationHint);
}

std::string format_bytes(Bytes bytes) {
  return fmt::format("{}{}", sign_of(bytes), format_scaled(magnitude(bytes), 1024, kByteNames));
}

std::string format_byte_difference(Bytes bytes) {
  return fmt::format("{}{}", bytes > 0 ? "+" : "", format_bytes(bytes));
}

std::string format_duration(Nanoseconds duration) {
  return fmt::format("{}{}", sign_of(duration), format_scaled(magnitude(duration), 1000, kTimeNames));
}

std::string format_rate(double bytes_per_second) {
  return format_scaled(bytes_per_second, 1000, kRateNames);
}

}  // namespace offprof
