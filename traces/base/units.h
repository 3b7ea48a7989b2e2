#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace offprof {

/// Number of bytes. Signed, so that a difference has the same type.
using Bytes = std::int64_t;
/// Duration, or a point on a clock of which only differences are used.
using Nanoseconds = std::int64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;

/// Parses a byte size like the GNU coreutils: a plain count, or a number (fractions allowed) with `K M G T`
/// or `KiB MiB GiB TiB` (powers of 1024) or `kB MB GB TB` (powers of 1000). A trailing `B` alone means bytes.
/// Throws Error (input) that lists the accepted forms. Negative sizes, bits (`Mb`) and overflow are rejected.
Bytes parse_bytes(std::string_view text);

/// Parses a rate: a byte size followed by `/s`, as in `25GB/s`. Returns bytes per second. Throws like
/// parse_bytes.
double parse_rate(std::string_view text);

/// Parses a duration with its unit: `250ns`, `10us`, `1.5ms`, `2s`. Throws Error (input).
Nanoseconds parse_duration(std::string_view text);

/// Formats bytes with three significant digits and powers of 1024: `1.50 GiB`, `512 B`.
std::string format_bytes(Bytes bytes);

/// Formats a difference with its sign: `+1.50 MiB`, `-12 B`, `0 B`.
std::string format_byte_difference(Bytes bytes);

/// Formats a duration with three significant digits: `812 ns`, `3.14 ms`, `1.02 s`.
std::string format_duration(Nanoseconds duration);

/// Formats a rate with powers of 1000, as link speeds are quoted: `12.5 GB/s`.
std::string format_rate(double bytes_per_second);

/// Returns the smallest multiple of `granule` that is at least `bytes`.
inline constexpr Bytes round_up(Bytes bytes, Bytes granule) {
  return (bytes + granule - 1) / granule * granule;
}

}  // namespace offprof
