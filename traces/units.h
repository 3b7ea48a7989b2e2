#pragma once

#include <cstdint>
#include <string>
#include <string_view>

namespace offprof {

/// A count of bytes. Signed, so that a difference of two is one too.
using Bytes = std::int64_t;
/// A span of time, or a point on a clock that only differences are taken of.
using Nanoseconds = std::int64_t;

inline constexpr Bytes kKiB = 1024;
inline constexpr Bytes kMiB = 1024 * kKiB;
inline constexpr Bytes kGiB = 1024 * kMiB;

/// Reads a byte size as GNU coreutils do: a plain count, or a number (fractions allowed) with `K M G T` or
/// `KiB MiB GiB TiB` (powers of 1024) or `kB MB GB TB` (powers of 1000). A trailing `B` alone is bytes.
/// Throws Error (usage) that lists what is accepted; negative sizes, bits (`Mb`) and overflow are refused.
Bytes parse_bytes(std::string_view text);

/// Reads a rate: a byte size followed by `/s`, as in `25GB/s`. Result in bytes a second. Throws like
/// parse_bytes.
double parse_rate(std::string_view text);

/// Reads a duration with its unit: `250ns`, `10us`, `1.5ms`, `2s`. Throws Error (usage).
Nanoseconds parse_duration(std::string_view text);

/// `1.50 GiB`, `512 B`: three significant digits, powers of 1024.
std::string format_bytes(Bytes bytes);

/// `+1.50 MiB`, `-12 B`, `0 B`.
std::string format_byte_difference(Bytes bytes);

/// `812 ns`, `3.14 ms`, `1.02 s`: three significant digits.
std::string format_duration(Nanoseconds duration);

/// `12.5 GB/s`: powers of 1000, as link speeds are quoted.
std::string format_rate(double bytes_per_second);

/// The least multiple of `granule` that is not below `bytes`.
inline constexpr Bytes round_up(Bytes bytes, Bytes granule) {
  return (bytes + granule - 1) / granule * granule;
}

}  // namespace offprof
