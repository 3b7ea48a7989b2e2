#pragma once

#include <ATen/core/Tensor.h>
#include <c10/core/Storage.h>

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "engine/host/copy_stream.h"
#include "traces/error.h"
#include "traces/link.h"
#include "traces/units.h"

namespace offprof {

/// Identity of a device allocation: counted from 1, never used twice in a process.
using AllocationId = std::int64_t;

/// Told of every allocation and free on the device, in order, on the thread that makes it.
class AllocationListener {
 public:
  virtual ~AllocationListener() = default;
  virtual void on_alloc(AllocationId id, Bytes bytes) = 0;
  virtual void on_free(AllocationId id, Bytes bytes) = 0;
};

/// A device's copy queues, each serial. Usually one a direction; under the `trl` preset kD2h carries both.
enum class CopyQueue : std::uint8_t { kD2h, kH2d };

/// A request for device memory that was refused.
struct OutOfMemory {
  Bytes asked_bytes = 0;
  Bytes live_bytes = 0;
  std::optional<Bytes> capacity_bytes;  ///< nullopt: the machine itself had no more
};

/// Where tensors live, seen from the engine: memory with its books, host memory to offload to, and one copy
/// stream per direction. Sizes count as requested.
class Device {
 public:
  using Event = CopyStream::Event;

  virtual ~Device() = default;

  virtual c10::Device torch_device() const = 0;
  /// `CPU, 2 cores`: for the trace, without anything that names the machine.
  virtual std::string description() const = 0;

  /// nullopt: the storage's memory is not this device's, or it has no bytes.
  virtual std::optional<AllocationId> allocation_of(const c10::Storage& storage) const = 0;
  /// The id that the next allocation gets: what has a smaller one is older.
  virtual AllocationId next_allocation() const = 0;
  /// Throws c10::OutOfMemoryError.
  virtual c10::Storage allocate(Bytes bytes) = 0;
  virtual Bytes live_bytes() const = 0;
  virtual Bytes peak_bytes() const = 0;
  virtual void reset_peak() = 0;
  /// nullopt: no limit but the machine's.
  virtual void set_capacity(std::optional<Bytes> bytes) = 0;
  /// The last refusal since the last call. LibTorch's interpreter hides what kind of error it passes on.
  virtual std::optional<OutOfMemory> take_out_of_memory() = 0;
  /// nullptr: nobody listens.
  virtual void set_listener(AllocationListener* listener) = 0;

  /// Host memory for offloaded tensors. Throws Error (environment) where it is exhausted.
  virtual std::byte* allocate_host(Bytes bytes) = 0;
  virtual void free_host(std::byte* buffer, Bytes bytes) = 0;
  /// nullopt: no limit but the machine's.
  virtual void set_host_capacity(std::optional<Bytes> bytes) = 0;
  /// What allocate_host last threw, if it did since the last call: where it threw inside a TorchScript
  /// module, the interpreter has made something else of it.
  virtual std::optional<Error> take_host_refusal() = 0;

  /// Queues a copy, after all that the compute stream was given so far.
  virtual Event enqueue(CopyQueue queue, CopyJob job) = 0;
  /// The compute stream waits for the event.
  virtual void wait(CopyQueue queue, Event event) = 0;
  /// Waits until every queue is idle and hands out what their copies took since the last call.
  virtual std::vector<CopyRecord> take_copy_records() = 0;
};

}  // namespace offprof
