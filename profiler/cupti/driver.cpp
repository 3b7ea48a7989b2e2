#include "profiler/cupti/driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

namespace offprof {
namespace {

/// Version as cuDriverGetVersion returns it: 13000 is 13.0.
constexpr int kNeededVersion = 13000;
/// CUDA_ERROR_NO_DEVICE.
constexpr int kNoDevice = 100;

DriverFunctions open_driver() {
  DriverFunctions driver;
  void* const library = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (library == nullptr) return driver;
  driver.is_there = true;
  driver.start = reinterpret_cast<int (*)(unsigned)>(dlsym(library, "cuInit"));
  driver.version = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDriverGetVersion"));
  driver.count_devices = reinterpret_cast<int (*)(int*)>(dlsym(library, "cuDeviceGetCount"));
  return driver;
}

Error no_gpu() {
  return environment_error(
      "the NVIDIA driver finds no GPU",
      "check whether nvidia-smi shows a GPU, and whether CUDA_VISIBLE_DEVICES hides it; a "
      "container needs --gpus all");
}

}  // namespace

std::optional<Error> driver_refusal() {
  return driver_refusal(open_driver());
}

std::optional<Error> missing_driver() {
  if (open_driver().is_there) return std::nullopt;
  return driver_refusal(DriverFunctions{});
}

std::optional<Error> driver_refusal(const DriverFunctions& driver) {
  if (!driver.is_there)
    return environment_error("there is no NVIDIA driver (libcuda.so.1)",
                             "install the driver of the GPU; a container needs --gpus all");
  int version = 0;
  if (driver.version != nullptr && driver.version(&version) == 0 && version < kNeededVersion)
    return environment_error(fmt::format("the NVIDIA driver supports CUDA {}.{}, but CUPTI needs CUDA 13",
                                         version / 1000, version % 1000 / 10),
                             "update the driver to 580 or later; nvidia-smi shows the installed version");
  const int started = driver.start == nullptr ? 0 : driver.start(0);
  if (started == kNoDevice) return no_gpu();
  if (started != 0)
    return environment_error(fmt::format("the NVIDIA driver does not start (cuInit: error {})", started),
                             "check the output of nvidia-smi and dmesg");
  int count = 0;
  if (driver.count_devices != nullptr && driver.count_devices(&count) == 0 && count == 0) return no_gpu();
  return std::nullopt;
}

}  // namespace offprof
