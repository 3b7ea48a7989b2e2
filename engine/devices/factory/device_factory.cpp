#include "engine/devices/factory/device_factory.h"

#include <dlfcn.h>

#include <charconv>
#include <filesystem>
#include <string_view>

#include "engine/devices/cuda_plugin.h"
#include "engine/devices/host/counted_allocator.h"
#include "engine/devices/host/host_device.h"
#include "engine/devices/virtual_gpu/open.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Returns the path of the CUDA library, which lies beside the library with this code.
std::string cuda_library() {
  Dl_info here{};
  dladdr(reinterpret_cast<const void*>(&make_device), &here);
  return (std::filesystem::path(here.dli_fname).parent_path() / kCudaPluginLibrary).string();
}

/// Returns a hint. A virtual GPU needs files of the build, and nothing of NVIDIA's.
const char* remedy(bool is_virtual) {
  return is_virtual
             ? "a file of the build or of LibTorch is missing or broken; run scripts/setup.sh && cmake "
               "--preset release && cmake --build --preset release"
             : "a GPU needs its driver and the NVIDIA packages that the torch wheel depends on, "
               "which scripts/setup.sh does not install; --device virtual:h200 needs neither";
}

Error cannot_open(const std::string& why, bool is_virtual) {
  return environment_error("LibTorch's CUDA part cannot be opened: " + why, remedy(is_virtual));
}

MakeCudaDevice open_cuda_library(bool is_virtual) {
  void* library = dlopen(cuda_library().c_str(), RTLD_NOW | RTLD_GLOBAL);
  if (library == nullptr) {
    const std::string why = dlerror();
    if (is_virtual) check_coverage(why);
    throw cannot_open(why, is_virtual);
  }
  const auto function = reinterpret_cast<MakeCudaDevice>(dlsym(library, kMakeCudaDeviceSymbol));
  if (function == nullptr)
    throw cannot_open(std::string("it has no symbol ") + kMakeCudaDeviceSymbol, is_virtual);
  return function;
}

/// Throws Error (input) if LibTorch has no code for the profile's GPU. LibTorch must be loaded before: its
/// libraries report to the virtual GPU which code they hold.
void check_profile_has_code() {
  const auto the_gpu = reinterpret_cast<VirtualGpu* (*)()>(dlsym(RTLD_DEFAULT, kVirtualGpuSymbol));
  const std::string problem = the_gpu == nullptr ? "" : the_gpu()->code_problem();
  if (!problem.empty())
    throw input_error(
        problem,
        "choose a profile with one of these, or with the same major version and a higher minor version");
}

/// Returns the GPU's index: 0 for `cuda`, 1 for `cuda:1`.
int gpu_index(std::string_view name) {
  const std::size_t colon = name.find(':');
  if (colon == std::string_view::npos) return 0;
  int index = 0;
  const char* end = name.data() + name.size();
  const auto [stop, failure] = std::from_chars(name.data() + colon + 1, end, index);
  if (failure != std::errc() || stop != end || index < 0)
    throw input_error("no such device: " + std::string(name), "write cuda:N, where N counts from 0");
  return index;
}

}  // namespace

std::unique_ptr<Device> make_device(const std::string& name, const Link& link_cap) {
  if (name == "host") return std::make_unique<HostDevice>(CountedAllocator::install(), link_cap);
  const bool is_virtual = name.starts_with("virtual");
  if (!is_virtual && !name.starts_with("cuda"))
    throw input_error("no such device: " + name, "the devices are host, cuda, cuda:N and virtual:PROFILE");
  const int index = is_virtual ? 0 : gpu_index(name);
  const MakeCudaDevice make_cuda_device = open_cuda_library(is_virtual);
  if (is_virtual) check_profile_has_code();
  return std::unique_ptr<Device>(make_cuda_device(index, is_virtual));
}

}  // namespace offprof
