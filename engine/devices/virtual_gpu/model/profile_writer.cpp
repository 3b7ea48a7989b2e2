#include <cmath>

#include "engine/devices/virtual_gpu/model/gpu_fit.h"
#include "engine/devices/virtual_gpu/model/profile_format.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

/// Rounds a share or a number of elements to four digits after the point: no measurement has more.
double rounded(double figure) {
  constexpr double kScale = 1e4;
  return std::round(figure * kScale) / kScale;
}

std::int64_t whole(double rate) {
  return std::llround(rate);
}

nlohmann::ordered_json direction(const LinkDirection& link) {
  return {{"bytes_per_second", whole(link.bytes_per_second)}, {"latency_ns", link.latency_ns}};
}

}  // namespace

std::string format_profile(const DeviceProfile& profile, const std::map<std::string, std::string>& sources) {
  nlohmann::ordered_json json = {
      {"schema", kProfileSchema}, {"name", profile.name}, {"device_name", profile.device_name}};
  json["memory"] = {{"bytes", profile.memory_bytes},
                    {"context_bytes", profile.context_bytes},
                    {"bus_bits", profile.memory_bus_bits},
                    {"clock_khz", profile.memory_clock_khz},
                    {"bytes_per_second", whole(profile.memory_bytes_per_second)},
                    {"l2_cache_bytes", profile.l2_cache_bytes},
                    {"latency_ns", profile.memory_latency_ns}};
  json["multiprocessors"] = {
      {"count", profile.multiprocessors},
      {"compute_capability_major", profile.compute_capability_major},
      {"compute_capability_minor", profile.compute_capability_minor},
      {"max_threads", profile.max_threads_per_multiprocessor},
      {"max_blocks", profile.max_blocks_per_multiprocessor},
      {"registers", profile.registers_per_multiprocessor},
      {"clock_khz", profile.clock_khz},
      {"shared_memory_bytes", profile.shared_memory_per_multiprocessor_bytes},
      {"shared_memory_per_block_bytes", profile.shared_memory_per_block_bytes},
      {"shared_memory_per_block_optin_bytes", profile.shared_memory_per_block_optin_bytes}};
  for (const char* dtype : kProfileDtypes)
    json["flops_per_second"][dtype] = whole(profile.flops_per_second.at(dtype));
  json["efficiency"] = {{"compute", rounded(profile.compute_efficiency)},
                        {"memory", rounded(profile.memory_efficiency)},
                        {"attention", rounded(profile.attention_efficiency)}};
  if (profile.sustained_clock < 1) json["efficiency"]["sustained_clock"] = rounded(profile.sustained_clock);
  json["kernels"] = {{"kernel_ns", profile.kernel_ns},
                     {"launch_ns", profile.launch_ns},
                     {"elements_per_cycle", rounded(profile.elements_per_cycle)}};
  json["host"] = {{"operator_ns", profile.host.operator_ns},
                  {"python_call_ns", profile.host.python_call_ns},
                  {"recording_ns", profile.host.recording_ns},
                  {"node_ns", profile.host.node_ns},
                  {"launch_ns", profile.host.launch_ns}};
  if (profile.host.python_function_ns > 0)
    json["host"]["python_function_ns"] = profile.host.python_function_ns;
  if (profile.host.random_number_ns > 0) json["host"]["random_number_ns"] = profile.host.random_number_ns;
  json["link"] = {{"d2h", direction(profile.link.d2h)}, {"h2d", direction(profile.link.h2d)}};
  if (profile.link.bidirectional_bytes_per_second > 0)
    json["link"]["bidirectional_bytes_per_second"] = whole(profile.link.bidirectional_bytes_per_second);
  for (const auto& [group, source] : sources) json["sources"][group] = source;
  return dump_json(json, 2) + "\n";
}

}  // namespace offprof
