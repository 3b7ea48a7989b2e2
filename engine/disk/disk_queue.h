#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "engine/disk/disk_tier.h"

namespace offprof {

/// One read or write of a file, at most once around the kernel: it may come back short.
struct FileTransfer {
  DiskDirection direction = DiskDirection::kWrite;
  int fd = -1;
  std::byte* memory = nullptr;  ///< a write only reads it; must live until the request is complete
  Bytes bytes = 0;
  Bytes offset = 0;      ///< in the file
  std::uint64_t id = 0;  ///< comes back in the completion
};

struct DiskCompletion {
  std::uint64_t id = 0;
  std::int64_t result = 0;  ///< bytes transferred, or a negative errno
};

/// Requests to the kernel, many at once, complete in any order. One thread submits and waits; it must wait
/// for all that it has submitted before the queue goes. Any thread wakes.
class DiskQueue {
 public:
  virtual ~DiskQueue() = default;
  virtual void submit(const FileTransfer& request) = 0;
  /// Returns when a request is complete, or when woken since the last wait; appends what is complete to
  /// `done`.
  virtual void wait(std::vector<DiskCompletion>& done) = 0;
  virtual void wake() = 0;
};

/// A pool of `threads`. Throws Error (environment) where the machine has none for it.
std::unique_ptr<DiskQueue> make_thread_queue(int threads);

/// Whether io_uring is built in.
bool has_io_uring_queue() noexcept;

/// For at most `requests` at once. Null, and why, where io_uring is not built in, or the kernel, a container
/// or a limit does not allow it.
std::unique_ptr<DiskQueue> make_io_uring_queue(int requests, std::string& why_not);

}  // namespace offprof
