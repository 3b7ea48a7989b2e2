#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/device.h"

namespace offprof {

/// The devices that this program holds to the suite. A process has either the real CUDA or the virtual GPU,
/// so there are two programs.
std::vector<std::string> devices_under_test();

/// The GPUs among them, real or virtual.
inline std::vector<std::string> gpus_under_test() {
  std::vector<std::string> devices = devices_under_test();
  std::erase(devices, "host");
  return devices;
}

/// The host, where it is among them; else nothing.
inline std::vector<std::string> host_under_test() {
  std::vector<std::string> devices = devices_under_test();
  std::erase_if(devices, [](const std::string& name) { return name != "host"; });
  return devices;
}

/// A device as new. Throws Error (environment) where it does not work here.
std::unique_ptr<Device> open_device_under_test(const std::string& name);

/// What was seen to go wrong between streams, where somebody watches; a line each.
std::vector<std::string> hazards_seen();

}  // namespace offprof
