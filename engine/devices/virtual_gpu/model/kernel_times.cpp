#include "engine/devices/virtual_gpu/model/kernel_times.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace offprof {
namespace {

/// Returns the lower median. The keys that are looked up often have only a few launches each.
std::optional<Nanoseconds> median(std::vector<Nanoseconds> values) {
  const auto middle = values.begin() + static_cast<std::ptrdiff_t>((values.size() - 1) / 2);
  std::nth_element(values.begin(), middle, values.end());
  return *middle;
}

template <typename Map>
std::optional<Nanoseconds> median_of(const Map& map, const std::string& key) {
  const auto found = map.find(key);
  return found == map.end() ? std::nullopt : median(found->second);
}

}  // namespace

std::string kernel_key(std::string_view name, const std::uint32_t (&grid)[3],
                       const std::uint32_t (&block)[3]) {
  return fmt::format("{}|{}|{}", name, fmt::join(grid, ","), fmt::join(block, ","));
}

std::string op_key(std::string_view name, const std::vector<OperandKey>& operands) {
  const bool typed = std::ranges::all_of(
      operands, [](const OperandKey& operand) { return operand.sizes.empty() || !operand.dtype.empty(); });
  std::string key(name);
  key += '(';
  for (const OperandKey& operand : operands) {
    if (operand.sizes.empty()) continue;
    if (key.back() != '(') key += ',';
    fmt::format_to(std::back_inserter(key), "{}[{}]", typed ? operand.dtype : "",
                   fmt::join(operand.sizes, ","));
  }
  return key + ')';
}

void KernelTimes::add_kernel(const std::string& key, Nanoseconds duration) {
  by_kernel_[key].push_back(duration);
}

void KernelTimes::add_op(const std::string& key, Nanoseconds duration) {
  by_op_[key].push_back(duration);
}

std::optional<Nanoseconds> KernelTimes::of_kernel(const std::string& key) const {
  return median_of(by_kernel_, key);
}

std::optional<Nanoseconds> KernelTimes::of_op(const std::string& key) const {
  return median_of(by_op_, key);
}

}  // namespace offprof
