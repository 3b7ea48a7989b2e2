#pragma once

#include <memory>
#include <string>
#include <vector>

#include "engine/devices/device.h"

namespace offprof {

/// Returns the devices that this test program tests. A process has either the real CUDA or the virtual GPU,
/// so there are two test programs.
std::vector<std::string> devices_under_test();

/// Returns the GPUs among them, real or virtual.
inline std::vector<std::string> gpus_under_test() {
  std::vector<std::string> devices = devices_under_test();
  std::erase(devices, "host");
  return devices;
}

/// Returns the host if it is among them, else nothing.
inline std::vector<std::string> host_under_test() {
  std::vector<std::string> devices = devices_under_test();
  std::erase_if(devices, [](const std::string& name) { return name != "host"; });
  return devices;
}

/// Opens a new device. Throws Error (environment) if it does not work on this machine.
std::unique_ptr<Device> open_device_under_test(const std::string& name);

/// Returns the races between streams that a checker has seen, one per line; empty if there is no checker.
std::vector<std::string> hazards_seen();

}  // namespace offprof
