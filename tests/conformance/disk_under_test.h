#pragma once

#include <filesystem>

#include "engine/device.h"
#include "traces/error.h"

namespace offprof {

/// Gives the device a disk: the test's temporary folder, or a modelled one.
inline void give_disk(Device& device) {
  DiskRequest request;
  if (device.is_virtual())
    request.speed = {{1e9, 100, 0}, {2e9, 50, 0}};
  else
    request.folder = std::filesystem::temp_directory_path().string();
  device.open_disk(request);
}

/// In the place of the disk memory in which tensors lie compressed. False: this build has no codec, and the
/// disk is there as it was.
inline bool give_compressed_memory(Device& device) {
  try {
    device.open_disk({.folder = {}, .compressed = true});
  } catch (const Error&) {
    return false;
  }
  return true;
}

}  // namespace offprof
