#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/storage/disk_tier.h"

namespace offprof {

/// Read or write of a file in a single request to the kernel. It may come back short.
struct FileTransfer {
  DiskDirection direction = DiskDirection::kWrite;
  int fd = -1;
  std::byte* memory = nullptr;  ///< a write only reads it; must live until the request is complete
  Bytes bytes = 0;
  Bytes offset = 0;      ///< in the file
  std::uint64_t id = 0;  ///< repeated in the completion
};

struct DiskCompletion {
  std::uint64_t id = 0;
  std::int64_t result = 0;  ///< bytes transferred, or a negative errno
};

/// Queue of requests to the kernel, many at once, which complete in any order. One thread submits and waits;
/// it must wait for all its requests before it destroys the queue. Any thread may wake it.
class DiskQueue {
 public:
  virtual ~DiskQueue() = default;
  virtual void submit(const FileTransfer& request) = 0;
  /// Returns when a request is complete, or when the queue was woken since the last wait. Appends the
  /// complete requests to `done`.
  virtual void wait(std::vector<DiskCompletion>& done) = 0;
  virtual void wake() = 0;
};

/// Creates a queue with a pool of `threads` threads. Throws Error (environment) if the machine has no threads
/// left.
std::unique_ptr<DiskQueue> make_thread_queue(int threads);

/// True if io_uring is built in.
bool has_io_uring_queue() noexcept;

/// Creates a queue for at most `requests` requests at once. Returns null and sets `why_not` if io_uring is
/// not built in, or if the kernel, a container or a limit does not allow it.
std::unique_ptr<DiskQueue> make_io_uring_queue(int requests, std::string& why_not);

}  // namespace offprof
