#include "cli/plugin/nvidia_driver.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <stdexcept>

#include "cli/plugin/child_process.h"

namespace offprof {
namespace {

/// Counts GPUs with cuInit and cuDeviceGetCount of the CUDA driver API.
std::string count_gpus() {
  void* driver = dlopen("libcuda.so.1", RTLD_NOW | RTLD_LOCAL);
  if (driver == nullptr) throw std::runtime_error("no libcuda.so.1");
  const auto init = reinterpret_cast<int (*)(unsigned)>(dlsym(driver, "cuInit"));
  const auto count_devices = reinterpret_cast<int (*)(int*)>(dlsym(driver, "cuDeviceGetCount"));
  int count = 0;
  if (init == nullptr || count_devices == nullptr)
    throw std::runtime_error("libcuda.so.1 is not a CUDA driver");
  if (const int code = init(0); code != 0)
    throw std::runtime_error(fmt::format("the driver returned error {}", code));
  if (const int code = count_devices(&count); code != 0)
    throw std::runtime_error(fmt::format("the driver returned error {}", code));
  if (count == 0) throw std::runtime_error("the driver finds no GPU");
  return std::to_string(count);
}

}  // namespace

DriverAnswer ask_nvidia_driver() {
  const ChildResult result = run_in_child(count_gpus);
  return result.ok ? DriverAnswer{std::stoi(result.answer), ""} : DriverAnswer{0, result.answer};
}

}  // namespace offprof
