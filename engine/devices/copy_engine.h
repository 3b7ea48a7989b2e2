#pragma once

#include <ATen/core/Tensor.h>

#include <cstddef>
#include <cstdint>
#include <optional>
#include <vector>

#include "engine/devices/disk/device_disk.h"
#include "traces/base/units.h"
#include "traces/model/copy_record.h"
#include "traces/model/link.h"

namespace offprof {

/// One copy between device memory and host memory that allocate_host returned.
struct CopyRequest {
  void* to = nullptr;
  const void* from = nullptr;
  Bytes bytes = 0;
  CopyDirection direction = CopyDirection::kD2h;
  std::int64_t tag = 0;  ///< returned in the record
};

/// Copies between device memory and host memory, in one queue per direction beside the compute stream.
class CopyEngine {
 public:
  /// A point in a copy queue.
  using Event = std::uint64_t;

  virtual ~CopyEngine() = default;

  /// Queues a copy after all work that the compute stream has been given so far.
  virtual Event copy(CopyQueue queue, const CopyRequest& request) = 0;
  /// Queues a copy, as `copy` does, of a tensor whose elements are not dense in memory. `to` receives them
  /// densely, in the order of the tensor's strides. A device with a caching allocator takes device memory for
  /// this and frees it at once.
  virtual Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to,
                                 std::int64_t tag) = 0;
  /// Makes the compute stream wait for the event.
  virtual void wait(CopyQueue queue, Event event) = 0;
  /// Waits until every queue is idle and returns the records of their copies since the last call.
  virtual std::vector<CopyRecord> take_copy_records() = 0;
  /// Returns the link if it is known without measuring, as on a device with virtual clocks.
  virtual std::optional<Link> known_link() const { return std::nullopt; }
};

}  // namespace offprof
