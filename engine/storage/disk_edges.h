#pragma once

#include <functional>
#include <memory>

#include "engine/storage/disk_queue.h"
#include "engine/storage/file_calls.h"

namespace offprof {

/// Calls from the disk tier to the kernel, which tests can replace.
struct DiskEdges {
  std::shared_ptr<FileCalls> calls = std::make_shared<FileCalls>();
  /// Wraps the queue; empty: the queue is used as it is.
  std::function<std::unique_ptr<DiskQueue>(std::unique_ptr<DiskQueue>)> wrap_queue;
};

}  // namespace offprof
