#pragma once

#include <filesystem>

#include "engine/devices/device.h"

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

/// Gives the device compressed memory in place of a disk. Only for builds with a codec (has_block_codec): any
/// error fails the test.
inline void give_compressed_memory(Device& device) {
  device.open_disk({.folder = {}, .compressed = true});
}

}  // namespace offprof
