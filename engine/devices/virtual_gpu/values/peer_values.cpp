#include "engine/devices/virtual_gpu/values/peer_values.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <cstring>
#include <limits>

namespace offprof {
namespace {

constexpr int kExponentBitsOfHalf = 5, kExponentBitsOfBfloat16 = 8;

template <typename Number>
Number reduced(Reduction reduction, Number a, Number b) {
  switch (reduction) {
    case Reduction::kMax:
      return std::max(a, b);
    case Reduction::kMin:
      return std::min(a, b);
    case Reduction::kProduct:
      return static_cast<Number>(a * b);
    default:
      return static_cast<Number>(a + b);
  }
}

/// Adds the numbers of `given` to those of `sum`, which are not aligned either.
template <typename Number>
void reduce_into(std::vector<char>& sum, const std::vector<char>& given, Reduction reduction) {
  for (std::size_t at = 0; at + sizeof(Number) <= sum.size(); at += sizeof(Number)) {
    Number a, b;
    std::memcpy(&a, sum.data() + at, sizeof a);
    std::memcpy(&b, given.data() + at, sizeof b);
    a = reduced(reduction, a, b);
    std::memcpy(sum.data() + at, &a, sizeof a);
  }
}

template <typename Number>
void divide(std::vector<char>& sum, std::size_t divisor) {
  for (std::size_t at = 0; at + sizeof(Number) <= sum.size(); at += sizeof(Number)) {
    Number number;
    std::memcpy(&number, sum.data() + at, sizeof number);
    number = static_cast<Number>(number / static_cast<Number>(divisor));
    std::memcpy(sum.data() + at, &number, sizeof number);
  }
}

/// Multiplies numbers, which are not aligned.
template <typename Number>
void multiply(std::vector<char>& numbers, int factor) {
  for (std::size_t at = 0; at + sizeof(Number) <= numbers.size(); at += sizeof(Number)) {
    Number number;
    std::memcpy(&number, numbers.data() + at, sizeof number);
    number = static_cast<Number>(number * static_cast<Number>(factor));
    std::memcpy(numbers.data() + at, &number, sizeof number);
  }
}

/// Returns the value of a 16-bit float, of which `exponent_bits` are the exponent.
float to_float(std::uint16_t bits, int exponent_bits) {
  const int fraction_bits = 15 - exponent_bits;
  const int exponent = (bits >> fraction_bits) & ((1 << exponent_bits) - 1);
  const int fraction = bits & ((1 << fraction_bits) - 1);
  const int bias = (1 << (exponent_bits - 1)) - 1;
  const float sign = bits >> 15 != 0 ? -1.0F : 1.0F;
  if (exponent == (1 << exponent_bits) - 1)
    return fraction != 0 ? std::numeric_limits<float>::quiet_NaN()
                         : sign * std::numeric_limits<float>::infinity();
  const int whole = exponent == 0 ? fraction : fraction + (1 << fraction_bits);
  return sign * std::ldexp(static_cast<float>(whole), std::max(exponent, 1) - bias - fraction_bits);
}

/// Returns the largest or smallest 16-bit floats. Other reductions round after each step, in an order that
/// NCCL chooses, and so are known for equal numbers only.
std::optional<std::vector<char>> reduce_halves(const std::vector<std::vector<char>>& given,
                                               Reduction reduction, int exponent_bits) {
  if (reduction == Reduction::kAverage &&
      std::ranges::all_of(given, [&](const auto& bytes) { return bytes == given.front(); }))
    return given.front();
  if (reduction != Reduction::kMax && reduction != Reduction::kMin) return std::nullopt;
  std::vector<char> chosen = given.front();
  for (const std::vector<char>& bytes : given)
    for (std::size_t at = 0; at + sizeof(std::uint16_t) <= chosen.size(); at += sizeof(std::uint16_t)) {
      std::uint16_t a = 0, b = 0;
      std::memcpy(&a, chosen.data() + at, sizeof a);
      std::memcpy(&b, bytes.data() + at, sizeof b);
      const float first = to_float(a, exponent_bits), second = to_float(b, exponent_bits);
      if (reduction == Reduction::kMax ? second > first : second < first)
        std::memcpy(chosen.data() + at, &b, sizeof b);
    }
  return chosen;
}

template <typename Number>
std::vector<char> reduce_numbers(const std::vector<std::vector<char>>& given, Reduction reduction) {
  std::vector<char> sum = given.front();
  for (std::size_t rank = 1; rank < given.size(); ++rank) reduce_into<Number>(sum, given[rank], reduction);
  if (reduction == Reduction::kAverage) divide<Number>(sum, given.size());
  return sum;
}

std::optional<std::vector<char>> reduce(const std::vector<std::vector<char>>& given, NumberType type,
                                        Reduction reduction) {
  if (reduction == Reduction::kOther) return std::nullopt;
  switch (type) {
    case NumberType::kInt8:
      return reduce_numbers<std::int8_t>(given, reduction);
    case NumberType::kUint8:
      return reduce_numbers<std::uint8_t>(given, reduction);
    case NumberType::kInt32:
      return reduce_numbers<std::int32_t>(given, reduction);
    case NumberType::kUint32:
      return reduce_numbers<std::uint32_t>(given, reduction);
    case NumberType::kInt64:
      return reduce_numbers<std::int64_t>(given, reduction);
    case NumberType::kUint64:
      return reduce_numbers<std::uint64_t>(given, reduction);
    case NumberType::kFloat32:
      return reduce_numbers<float>(given, reduction);
    case NumberType::kFloat64:
      return reduce_numbers<double>(given, reduction);
    case NumberType::kFloat16:
      return reduce_halves(given, reduction, kExponentBitsOfHalf);
    case NumberType::kBfloat16:
      return reduce_halves(given, reduction, kExponentBitsOfBfloat16);
    default:  // not carried
      break;
  }
  return std::nullopt;
}

std::vector<char> part_of(const std::vector<char>& whole, int part, int parts) {
  const auto size = static_cast<std::ptrdiff_t>(whole.size()) / parts;
  return {whole.begin() + part * size, whole.begin() + (part + 1) * size};
}

/// Returns that part of each rank's bytes, one after another.
std::vector<char> joined(const std::vector<std::vector<char>>& given, int part, int parts) {
  std::vector<char> all;
  for (const std::vector<char>& bytes : given) {
    const std::vector<char> taken = part_of(bytes, part, parts);
    all.insert(all.end(), taken.begin(), taken.end());
  }
  return all;
}

}  // namespace

Bytes given_bytes(const CollectiveCall& call, int ranks) {
  switch (call.collective) {
    case Collective::kAllGather:
      return call.bytes / ranks;
    case Collective::kBroadcast:
      return call.is_root ? call.bytes : 0;
    case Collective::kReceive:
      return 0;
    default:
      return call.bytes;
  }
}

Bytes received_bytes(const CollectiveCall& call, int ranks) {
  switch (call.collective) {
    case Collective::kReduceScatter:
      return call.bytes / ranks;
    case Collective::kReduce:
      return call.is_root ? call.bytes : 0;
    case Collective::kSend:
      return 0;
    default:
      return call.bytes;
  }
}

std::optional<std::vector<char>> combine(const CollectiveCall& call, int rank,
                                         const std::vector<std::vector<char>>& given) {
  const int ranks = static_cast<int>(given.size());
  if (call.collective == Collective::kBroadcast) {
    const std::vector<char>& of_root = given.at(static_cast<std::size_t>(call.root));
    return of_root.empty() ? std::nullopt : std::optional(of_root);
  }
  const std::size_t size = given.front().size();
  if (size == 0 || std::ranges::any_of(given, [&](const auto& bytes) { return bytes.size() != size; }))
    return std::nullopt;
  switch (call.collective) {
    case Collective::kAllGather:
      return joined(given, 0, 1);
    case Collective::kAllToAll:
      return joined(given, rank, ranks);
    case Collective::kAllReduce:
    case Collective::kReduce:
      return reduce(given, call.type, call.reduction);
    case Collective::kReduceScatter: {
      const auto sum = reduce(given, call.type, call.reduction);
      return sum ? std::optional(part_of(*sum, rank, ranks)) : std::nullopt;
    }
    default:
      return std::nullopt;
  }
}

bool sum_equal(std::vector<char>& numbers, NumberType type, int ranks) {
  switch (type) {
    case NumberType::kInt8:
    case NumberType::kUint8:
      multiply<std::uint8_t>(numbers, ranks);
      return true;
    case NumberType::kInt32:
    case NumberType::kUint32:
      multiply<std::uint32_t>(numbers, ranks);
      return true;
    case NumberType::kInt64:
    case NumberType::kUint64:
      multiply<std::uint64_t>(numbers, ranks);
      return true;
    case NumberType::kFloat32:
      multiply<float>(numbers, ranks);
      return true;
    case NumberType::kFloat64:
      multiply<double>(numbers, ranks);
      return true;
    default:
      return false;
  }
}

}  // namespace offprof
