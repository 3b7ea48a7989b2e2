#include <fmt/format.h>

#include <limits>

#include "engine/devices/virtual_gpu/model/profile.h"
#include "engine/devices/virtual_gpu/model/profile_document.h"
#include "engine/devices/virtual_gpu/model/profile_format.h"
#include "traces/io/json_access.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

using Field = ProfileField<DeviceProfile>;

// Limits beyond any real GPU, so that no sum over its work exceeds 64 bits.
constexpr double kLeastShare = 1e-4;
constexpr double kLeastElements = 1e-3, kMostElements = 1e3;
constexpr Bytes kMostBytes = Bytes{1} << 50;
/// of host work of which there may be much between two operators
constexpr Nanoseconds kLongestWork = 1'000'000'000;

double share(const JsonValue& value) {
  const double amount = read_positive(value);
  if (amount > 1) value.fail(fmt::format("{} is more than 1, but it is a share of the peak", amount));
  if (amount < kLeastShare) value.fail(fmt::format("{} is less than {}", amount, kLeastShare));
  return amount;
}

Field count(std::string path, int DeviceProfile::*member, int low = 1) {
  return {std::move(path), [=](const JsonValue& value, DeviceProfile& profile) {
            profile.*member = static_cast<int>(value.as_integer(low, std::numeric_limits<int>::max()));
          }};
}

Field bytes(std::string path, Bytes DeviceProfile::*member) {
  return {std::move(path), [=](const JsonValue& value, DeviceProfile& profile) {
            profile.*member = value.as_integer(1, kMostBytes);
          }};
}

Field time(std::string path, Nanoseconds DeviceProfile::*member) {
  return {std::move(path), [=](const JsonValue& value, DeviceProfile& profile) {
            profile.*member = value.as_integer(1, kLongestMeasured);
          }};
}

Field host_time(const std::string& key, Nanoseconds HostTimes::*member) {
  return {"host." + key, [=](const JsonValue& value, DeviceProfile& profile) {
            profile.host.*member = value.as_integer(0, kLongestMeasured);
          }};
}

Field optional_host_time(const std::string& key, Nanoseconds HostTimes::*member) {
  return {.path = "host." + key,
          .read = [=](const JsonValue& value,
                      DeviceProfile& profile) { profile.host.*member = value.as_integer(0, kLongestWork); },
          .is_optional = true};
}

Field flops(const std::string& dtype) {
  return {"flops_per_second." + dtype, [=](const JsonValue& value, DeviceProfile& profile) {
            profile.flops_per_second[dtype] = read_rate(value);
          }};
}

Field efficiency(std::string path, double DeviceProfile::*member, bool is_optional = false) {
  return {.path = std::move(path),
          .read = [=](const JsonValue& value, DeviceProfile& profile) { profile.*member = share(value); },
          .is_optional = is_optional};
}

std::vector<Field> link_fields(const std::string& direction, LinkDirection Link::*member) {
  return {{"link." + direction + ".bytes_per_second",
           [=](const JsonValue& value, DeviceProfile& profile) {
             (profile.link.*member).bytes_per_second = read_rate(value);
           }},
          {"link." + direction + ".latency_ns", [=](const JsonValue& value, DeviceProfile& profile) {
             (profile.link.*member).latency_ns = value.as_integer(1, kLongestMeasured);
           }}};
}

std::vector<Field> memory_fields() {
  return {bytes("memory.bytes", &DeviceProfile::memory_bytes),
          bytes("memory.context_bytes", &DeviceProfile::context_bytes),
          count("memory.bus_bits", &DeviceProfile::memory_bus_bits),
          count("memory.clock_khz", &DeviceProfile::memory_clock_khz),
          {"memory.bytes_per_second",
           [](const JsonValue& value, DeviceProfile& profile) {
             profile.memory_bytes_per_second = read_rate(value);
           }},
          bytes("memory.l2_cache_bytes", &DeviceProfile::l2_cache_bytes),
          time("memory.latency_ns", &DeviceProfile::memory_latency_ns)};
}

std::vector<Field> multiprocessor_fields() {
  const std::string group = "multiprocessors.";
  return {count(group + "count", &DeviceProfile::multiprocessors),
          count(group + "compute_capability_major", &DeviceProfile::compute_capability_major),
          count(group + "compute_capability_minor", &DeviceProfile::compute_capability_minor, 0),
          count(group + "max_threads", &DeviceProfile::max_threads_per_multiprocessor),
          count(group + "max_blocks", &DeviceProfile::max_blocks_per_multiprocessor),
          count(group + "registers", &DeviceProfile::registers_per_multiprocessor),
          count(group + "clock_khz", &DeviceProfile::clock_khz),
          bytes(group + "shared_memory_bytes", &DeviceProfile::shared_memory_per_multiprocessor_bytes),
          bytes(group + "shared_memory_per_block_bytes", &DeviceProfile::shared_memory_per_block_bytes),
          bytes(group + "shared_memory_per_block_optin_bytes",
                &DeviceProfile::shared_memory_per_block_optin_bytes)};
}

std::vector<Field> all_fields() {
  std::vector<Field> fields = {{"schema", [](const JsonValue&, DeviceProfile&) {}},
                               text_field<DeviceProfile>("name", &DeviceProfile::name),
                               text_field<DeviceProfile>("device_name", &DeviceProfile::device_name)};
  const auto add = [&](const std::vector<Field>& more) {
    fields.insert(fields.end(), more.begin(), more.end());
  };
  add(memory_fields());
  add(multiprocessor_fields());
  for (const char* dtype : kProfileDtypes) add({flops(dtype)});
  add({efficiency("efficiency.compute", &DeviceProfile::compute_efficiency),
       efficiency("efficiency.memory", &DeviceProfile::memory_efficiency),
       efficiency("efficiency.attention", &DeviceProfile::attention_efficiency),
       efficiency("efficiency.sustained_clock", &DeviceProfile::sustained_clock, true),
       time("kernels.kernel_ns", &DeviceProfile::kernel_ns),
       time("kernels.launch_ns", &DeviceProfile::launch_ns),
       {"kernels.elements_per_cycle", [](const JsonValue& value, DeviceProfile& profile) {
          profile.elements_per_cycle = read_between(value, kLeastElements, kMostElements);
        }}});
  add({host_time("operator_ns", &HostTimes::operator_ns),
       host_time("python_call_ns", &HostTimes::python_call_ns),
       host_time("recording_ns", &HostTimes::recording_ns), host_time("node_ns", &HostTimes::node_ns),
       host_time("launch_ns", &HostTimes::launch_ns),
       optional_host_time("python_function_ns", &HostTimes::python_function_ns),
       optional_host_time("random_number_ns", &HostTimes::random_number_ns)});
  add(link_fields("d2h", &Link::d2h));
  add(link_fields("h2d", &Link::h2d));
  add({{.path = "link.bidirectional_bytes_per_second",
        .read =
            [](const JsonValue& value, DeviceProfile& profile) {
              profile.link.bidirectional_bytes_per_second = read_rate(value);
            },
        .is_optional = true}});
  for (const char* group :
       {"memory", "multiprocessors", "flops_per_second", "efficiency", "kernels", "host", "link"})
    add({source_field<DeviceProfile>(group)});
  return fields;
}

/// Bytes of its own traffic that a kernel bound by memory loses for a byte that is copied out or in beside
/// it: measured on an H100 (traces/recorded/h100/copies.json).
constexpr double kLostToCopyOut = 1.06, kLostToCopyIn = 1.56;
/// Share of kernel time that memory bounds, so that copies slow it down: the median of seven steps recorded
/// on an H100 and an H200 (traces/recorded), of 0.19 to 0.73, in kernels that are no product, convolution or
/// attention.
constexpr double kBoundByMemory = 0.46;

/// Derives what compute loses by copies from the figures of the memory.
void set_compute_loss(DeviceProfile& profile) {
  const double ns_per_byte =
      kNanosecondsPerSecond / (profile.memory_bytes_per_second * profile.memory_efficiency);
  profile.link.d2h.compute_ns_per_byte = kBoundByMemory * kLostToCopyOut * ns_per_byte;
  profile.link.h2d.compute_ns_per_byte = kBoundByMemory * kLostToCopyIn * ns_per_byte;
}

}  // namespace

DeviceProfile parse_profile(const std::string& text, const std::string& where) {
  auto profile = read_profile<DeviceProfile>(
      all_fields(), {.schema = kProfileSchema, .what = "a GPU profile", .reference = "gpu-profiles.md"}, text,
      where);
  set_compute_loss(profile);
  return profile;
}

}  // namespace offprof
