#include "engine/devices/virtual_gpu/model/gpu_fit.h"

#include <fmt/format.h>

#include <algorithm>

#include "engine/devices/virtual_gpu/model/kernel_cost.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

constexpr Bytes kElementBytes = 2;  // bfloat16

OperandShape operand(std::vector<std::int64_t> sizes) {
  OperandShape shape{
      .dtype = "bfloat16", .sizes = std::move(sizes), .bytes = kElementBytes, .element_bytes = kElementBytes};
  for (const std::int64_t size : shape.sizes) shape.bytes *= size;
  return shape;
}

KernelWork work_of_op(std::string_view name, std::vector<OperandShape> operands, Bytes allocated = 0) {
  return {.work = work_of({.name = name, .operands = std::move(operands)}, allocated),
          .has_unknown_launch = true};
}

KernelWork add_work() {
  return work_of_op("aten::add_", {operand({kAddElements}), operand({kAddElements})});
}

KernelWork broadcast_work() {
  KernelWork work =
      work_of_op("aten::mul_", {operand({kBroadcastRows, kBroadcastColumns}), operand({kBroadcastRows, 1})});
  work.single_elements = static_cast<double>(kBroadcastRows) * kBroadcastColumns;
  return work;
}

KernelWork product_work() {
  const OperandShape matrix = operand({kProductWidth, kProductWidth});
  return work_of_op("aten::mm", {matrix, matrix}, matrix.bytes);
}

KernelWork attention_work() {
  const OperandShape tensor =
      operand({kAttentionBatch, kAttentionPositions, kAttentionHeads, kAttentionWidth});
  return work_of_op("aten::_flash_attention_forward", {tensor, tensor, tensor}, tensor.bytes);
}

/// Returns the value of a figure, from `low` to `high`, for which the modelled time of the work is the
/// measured one. Modelled times fall with it.
// NOLINTNEXTLINE(performance-unnecessary-value-param): changed through the pointer to its member
double fitted(DeviceProfile profile, double DeviceProfile::*figure, double low, double high,
              const KernelWork& work, Nanoseconds measured_ns) {
  constexpr int kHalvings = 60;
  for (int i = 0; i < kHalvings; ++i) {
    const double middle = (low + high) / 2;
    profile.*figure = middle;
    (modelled_time(profile, {}, work) > measured_ns ? low : high) = middle;
  }
  return (low + high) / 2;
}

constexpr double kMostFittedElements = 100;

/// Returns true if the measured time of the broadcast is longer than its traffic takes: otherwise it says
/// nothing about elements, as on a GPU with little bandwidth.
bool is_bound_by_elements(DeviceProfile profile, Nanoseconds measured_ns) {
  constexpr double kClearlyLonger = 1.02;
  profile.elements_per_cycle = kMostFittedElements;
  const Nanoseconds traffic_ns = modelled_time(profile, {}, broadcast_work());
  return static_cast<double>(measured_ns) > kClearlyLonger * static_cast<double>(traffic_ns);
}

/// Copies what the driver reports.
void take_properties(DeviceProfile& profile, const DeviceProfile& from) {
  const double rate_before = static_cast<double>(profile.multiprocessors) * profile.clock_khz;
  const double rate = static_cast<double>(from.multiprocessors) * from.clock_khz;
  for (auto& [dtype, flops] : profile.flops_per_second) flops *= rate / rate_before;
  const double memory_before = static_cast<double>(profile.memory_bus_bits) * profile.memory_clock_khz;
  const double memory = static_cast<double>(from.memory_bus_bits) * from.memory_clock_khz;
  profile.memory_bytes_per_second *= memory / memory_before;
  profile.device_name = from.device_name;
  profile.memory_bytes = from.memory_bytes;
  profile.compute_capability_major = from.compute_capability_major;
  profile.compute_capability_minor = from.compute_capability_minor;
  profile.multiprocessors = from.multiprocessors;
  profile.max_threads_per_multiprocessor = from.max_threads_per_multiprocessor;
  profile.max_blocks_per_multiprocessor = from.max_blocks_per_multiprocessor;
  profile.registers_per_multiprocessor = from.registers_per_multiprocessor;
  profile.clock_khz = from.clock_khz;
  profile.shared_memory_per_block_bytes = from.shared_memory_per_block_bytes;
  profile.shared_memory_per_block_optin_bytes = from.shared_memory_per_block_optin_bytes;
  profile.shared_memory_per_multiprocessor_bytes = from.shared_memory_per_multiprocessor_bytes;
  profile.l2_cache_bytes = from.l2_cache_bytes;
  profile.memory_bus_bits = from.memory_bus_bits;
  profile.memory_clock_khz = from.memory_clock_khz;
}

}  // namespace

DeviceProfile profile_like(const DeviceProfile& properties) {
  std::vector<DeviceProfile> profiles;
  for (const std::string& name : profile_names()) profiles.push_back(load_profile(name));
  const auto named = std::ranges::find(profiles, properties.device_name, &DeviceProfile::device_name);
  if (named != profiles.end()) return *named;
  const auto similar = std::ranges::find_if(profiles, [&](const DeviceProfile& profile) {
    return profile.compute_capability_major == properties.compute_capability_major &&
           profile.compute_capability_minor == properties.compute_capability_minor;
  });
  if (similar != profiles.end()) return *similar;
  throw input_error(fmt::format("no built-in profile has the compute capability {}.{} of {}",
                                properties.compute_capability_major, properties.compute_capability_minor,
                                properties.device_name),
                    "Name the most similar one, whose peak rates count: --like h100-80gb");
}

DeviceProfile fit_profile(const DeviceProfile& like, const GpuMeasurements& measured,
                          const std::string& name) {
  constexpr double kLeastShare = 1e-3, kLeastElements = 1e-2;
  DeviceProfile profile = like;
  profile.name = name;
  take_properties(profile, measured.properties);
  profile.kernel_ns = std::max<Nanoseconds>(measured.small_kernel_ns, 1);
  profile.launch_ns = std::max<Nanoseconds>(measured.launch_ns, 1);
  profile.memory_efficiency =
      fitted(profile, &DeviceProfile::memory_efficiency, kLeastShare, 1, add_work(), measured.add_ns);
  profile.sustained_clock = 1;  // of short runs
  profile.compute_efficiency = fitted(profile, &DeviceProfile::compute_efficiency, kLeastShare, 1,
                                      product_work(), measured.product_ns);
  profile.attention_efficiency = fitted(profile, &DeviceProfile::attention_efficiency, kLeastShare, 1,
                                        attention_work(), measured.attention_ns);
  if (is_bound_by_elements(profile, measured.broadcast_ns))
    profile.elements_per_cycle = fitted(profile, &DeviceProfile::elements_per_cycle, kLeastElements,
                                        kMostFittedElements, broadcast_work(), measured.broadcast_ns);
  profile.sustained_clock = fitted(profile, &DeviceProfile::sustained_clock, kLeastShare, 1, product_work(),
                                   measured.sustained_product_ns);
  profile.link = measured.link;
  return profile;
}

}  // namespace offprof
