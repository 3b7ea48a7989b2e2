#pragma once

#include <filesystem>
#include <vector>

#include "engine/device.h"
#include "traces/error.h"
#include "traces/policy.h"

namespace offprof {

/// Gives the device a disk: the test's temporary folder, or a modelled one. A real GPU takes none.
inline void give_disk(Device& device) {
  DiskRequest request;
  if (device.is_virtual())
    request.speed = {{1e9, 100, 0}, {2e9, 50, 0}};
  else
    request.folder = std::filesystem::temp_directory_path().string();
  try {
    device.open_disk(request);
  } catch (const Error&) {
    if (!device.torch_device().is_cuda() || device.is_virtual()) throw;
  }
}

/// Those that the device can carry out.
inline std::vector<Policy> possible_on(Device& device, std::vector<Policy> policies) {
  if (device.disk() == nullptr) std::erase_if(policies, uses_disk);
  return policies;
}

}  // namespace offprof
