#include "engine/devices/virtual_gpu/opener/opener.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <array>
#include <exception>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>

#include "engine/devices/virtual_gpu/open.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Library that every LibTorch loads first.
constexpr const char* kFirstTorchLibrary = "libc10.so";

struct OpenGpu {
  VirtualGpu* gpu = nullptr;
  std::string profile;
};

/// The virtual GPU of this process; `gpu` is nullptr until it is open.
OpenGpu& the_gpu() {
  static OpenGpu gpu;
  return gpu;
}

/// The last failure of a thread.
struct Failure {
  std::string what, hint;
};

Failure& last_failure() {
  thread_local Failure failure;
  return failure;
}

void refuse_loaded_torch() {
  void* const torch = dlopen(kFirstTorchLibrary, RTLD_LAZY | RTLD_NOLOAD);
  if (torch == nullptr) return;
  dlclose(torch);
  throw environment_error(
      fmt::format("LibTorch ({}) is already loaded in this process: it has chosen its CUDA libraries",
                  kFirstTorchLibrary),
      "Open the virtual GPU before the first `import torch`.");
}

nlohmann::json to_json(const CollectiveCount& count) {
  return {{"name", count.name},
          {"calls", count.calls},
          {"bytes", count.bytes},
          {"time_ns", count.time_ns},
          {"least_time_ns", count.range.low_ns},
          {"most_time_ns", count.range.high_ns}};
}

nlohmann::json state_of(const OpenGpu& opened) {
  VirtualGpu& gpu = *opened.gpu;
  const std::optional<int> missing = gpu.missing_device();
  return {{"profile", opened.profile},
          {"host_time_ns", gpu.host_time()},
          {"launches", gpu.launches()},
          {"unwritten_calls", gpu.unwritten_calls()},
          {"unknown_sizes", gpu.take_unknown_sizes()},
          {"missing_device", missing ? nlohmann::json(*missing) : nlohmann::json()}};
}

nlohmann::json collectives_of(const VirtualGpu& gpu) {
  const CollectiveFigures figures = gpu.collective_figures();
  auto collectives = nlohmann::json::array();
  for (const CollectiveCount& count : figures.counts) collectives.push_back(to_json(count));
  return {{"communicators", figures.communicators},
          {"exposed_collectives_ns", figures.exposed_ns},
          {"mismatch", figures.mismatch},
          {"collectives", std::move(collectives)}};
}

void open(const std::string& folder, const std::string& profile, Bytes memory_limit, int devices,
          const std::string& cluster, bool balanced_experts) {
  OpenGpu& opened = the_gpu();
  if (opened.gpu != nullptr) {
    throw input_error(fmt::format("the virtual GPU is already open in this process, as {}", opened.profile),
                      "Open it once per process.");
  }
  if (memory_limit < 0) throw input_error(fmt::format("the memory limit is negative: {}", memory_limit));
  if (devices <= 0) throw input_error(fmt::format("the number of devices is not positive: {}", devices));
  VirtualGpuOptions options;
  options.devices = devices;
  options.assumes_balanced_experts = balanced_experts;
  options.profile = load_profile(profile);
  if (!cluster.empty()) options.cluster = load_cluster(cluster);
  refuse_loaded_torch();
  const std::string name = options.profile.name;
  VirtualGpu& gpu = open_virtual_gpu(folder, std::move(options));
  if (memory_limit > 0) gpu.set_memory_limit(memory_limit);
  opened = {&gpu, name};
}

int fail(int status, std::string what, std::string hint) {
  last_failure() = {std::move(what), std::move(hint)};
  return status;
}

}  // namespace
}  // namespace offprof

#define OFFPROF_EXPORT __attribute__((visibility("default")))

extern "C" {

// Exceptions must not leave a C function.
OFFPROF_EXPORT int offprof_virtual_gpu_open(const char* folder, const char* profile,
                                            std::int64_t memory_limit_bytes, int devices, const char* cluster,
                                            int balanced_experts) {
  constexpr int kBadInput = 2, kEnvironment = 3;
  offprof::last_failure() = {};
  try {
    offprof::open(folder, profile, memory_limit_bytes, devices, cluster, balanced_experts != 0);
    return 0;
  } catch (const offprof::Error& error) {
    return offprof::fail(error.kind() == offprof::ErrorKind::kInput ? kBadInput : kEnvironment, error.what(),
                         error.hint());
  } catch (const std::exception& error) {
    return offprof::fail(kEnvironment, error.what(), "");
  }
}

OFFPROF_EXPORT const char* offprof_virtual_gpu_error() {
  return offprof::last_failure().what.c_str();
}

OFFPROF_EXPORT const char* offprof_virtual_gpu_hint() {
  return offprof::last_failure().hint.c_str();
}

OFFPROF_EXPORT const char* offprof_virtual_gpu_torch_version() {
  return OFFPROF_LIBTORCH_VERSION;
}

OFFPROF_EXPORT const char* offprof_virtual_gpu_state() {
  thread_local std::string text;
  const offprof::OpenGpu& opened = offprof::the_gpu();
  if (opened.gpu == nullptr) return nullptr;
  text = offprof::state_of(opened).dump();
  return text.c_str();
}

OFFPROF_EXPORT const char* offprof_virtual_gpu_collectives() {
  thread_local std::string text;
  const offprof::VirtualGpu* const gpu = offprof::the_gpu().gpu;
  if (gpu == nullptr) return nullptr;
  text = offprof::collectives_of(*gpu).dump();
  return text.c_str();
}

OFFPROF_EXPORT int offprof_virtual_gpu_device() {
  const offprof::VirtualGpu* const gpu = offprof::the_gpu().gpu;
  return gpu == nullptr ? 0 : gpu->device();
}

OFFPROF_EXPORT void offprof_virtual_gpu_let_watchdogs_look() {
  offprof::VirtualGpu* const gpu = offprof::the_gpu().gpu;
  if (gpu != nullptr) gpu->let_watchdogs_look();
}

OFFPROF_EXPORT void offprof_virtual_gpu_note_group(const char* key, std::int64_t key_bytes, int ranks,
                                                   int nodes, const char* name) {
  offprof::VirtualGpu* const gpu = offprof::the_gpu().gpu;
  if (gpu != nullptr) gpu->note_group({key, static_cast<std::size_t>(key_bytes)}, ranks, nodes, name);
}

OFFPROF_EXPORT void offprof_virtual_gpu_exchange_with_peers(const char* folder, int rank, int ranks,
                                                            int patience_s, int signals,
                                                            void (*call_site)(char* text, int bytes)) {
  constexpr int kLongestSite = 512;
  offprof::VirtualGpu* const gpu = offprof::the_gpu().gpu;
  if (gpu == nullptr) return;
  gpu->exchange_with_peers(folder, rank, ranks, patience_s, signals, [call_site] {
    std::array<char, kLongestSite> text{};
    call_site(text.data(), kLongestSite);
    return std::string(text.data());
  });
}

OFFPROF_EXPORT void offprof_virtual_gpu_note_objects(int are_carried) {
  offprof::VirtualGpu* const gpu = offprof::the_gpu().gpu;
  if (gpu != nullptr) gpu->note_objects(are_carried != 0);
}

OFFPROF_EXPORT void offprof_virtual_gpu_stop_exchange() {
  offprof::VirtualGpu* const gpu = offprof::the_gpu().gpu;
  if (gpu != nullptr) gpu->stop_exchange();
}

}  // extern "C"
