#pragma once

#include <cstddef>
#include <optional>

#include "traces/base/error.h"
#include "traces/base/units.h"

namespace offprof {

/// Host memory for offloaded tensors; pinned, if the device is a GPU.
class HostAllocator {
 public:
  virtual ~HostAllocator() = default;

  /// Allocates host memory for offloaded tensors. Throws Error (environment) if it is exhausted.
  virtual std::byte* allocate_host(Bytes bytes) = 0;
  /// Frees a buffer. Its copies must be complete, or compute must wait for them.
  virtual void free_host(std::byte* buffer, Bytes bytes) = 0;
  /// Limits the host memory; nullopt: no limit but the machine's.
  virtual void set_host_capacity(std::optional<Bytes> bytes) = 0;
  /// Returns the pinned memory that is held for allocate_host, in use or not; nullopt: the host memory is not
  /// pinned.
  virtual std::optional<Bytes> host_reserved_bytes() const { return std::nullopt; }
  /// Waits until the device is idle, frees unused pinned memory and returns its bytes.
  virtual Bytes trim_host() { return 0; }
  /// Counts host memory of saved tensors, of all steps whose graphs exist: a graph may outlive its step.
  void count_saved_host(Bytes change) { saved_host_bytes_ += change; }
  Bytes saved_host_bytes() const { return saved_host_bytes_; }
  /// Returns the Error that allocate_host threw last since the last call, if any. Inside a TorchScript
  /// module, the interpreter replaces that exception by another.
  virtual std::optional<Error> take_host_refusal() = 0;

 private:
  Bytes saved_host_bytes_ = 0;
};

}  // namespace offprof
