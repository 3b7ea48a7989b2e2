#pragma once

#include <functional>
#include <memory>

#include "engine/disk/disk_queue.h"
#include "engine/disk/file_calls.h"

namespace offprof {

/// Where the disk tier meets the kernel, for tests to put something between.
struct DiskEdges {
  std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>();
  /// Puts something before the queue; none: nothing.
  std::function<std::unique_ptr<DiskQueue>(std::unique_ptr<DiskQueue>)> wrap_queue;
};

}  // namespace offprof
