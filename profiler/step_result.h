#pragma once

#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/copy_record.h"
#include "engine/disk/compressed_tier.h"
#include "engine/disk/disk_tier.h"
#include "engine/schedule/scheduler.h"
#include "profiler/cupti/activity.h"
#include "profiler/recorded_pass.h"
#include "traces/allocator_state.h"
#include "traces/ledger.h"
#include "traces/units.h"

namespace offprof {

/// What one training step came to.
struct StepResult {
  Nanoseconds step_time_ns = 0;
  Nanoseconds exposed_ns = 0;
  std::optional<Nanoseconds> busy_ns;  ///< the compute stream had something to do; nullopt: not known
  Bytes device_peak_bytes = 0;
  Bytes device_resident_bytes = 0;
  std::optional<CacheUse> cache_use;
  Bytes host_peak_bytes = 0;
  std::optional<Bytes> host_reserved_bytes;  ///< pinned; nullopt: none is
  Bytes d2h_bytes = 0;
  Bytes h2d_bytes = 0;
  Bytes disk_peak_bytes = 0;  ///< this and the next two: 0 where no disk was used
  Bytes disk_write_bytes = 0, disk_read_bytes = 0;
  std::optional<StoredBytes> disk_stored;  ///< what compression made of disk_write_bytes; nullopt: none does
  int disk_refusals = 0;        ///< the disk was full: those tensors went to host memory, or stayed
  int refused_reloads = 0;      ///< for want of device memory, and put off or made room for
  Nanoseconds d2h_busy_ns = 0;  ///< the sum of the copies' times
  Nanoseconds h2d_busy_ns = 0;
  Ledger ledger;
  std::vector<Command> commands;
  bool has_other_commands = false;  ///< than the first of the steps that were trained in a row
  std::vector<CopyRecord> copies;
  std::vector<DiskRecord> disk_transfers;
  RecordedPass recording;
  /// How long each phase took, by name, of a step that is not recorded; empty on a virtual GPU, where a mark
  /// takes the host's time too.
  std::vector<std::pair<std::string_view, Nanoseconds>> phases;
  GpuActivity gpu;  ///< of a step that was traced: what the GPU did, on the tracer's clock

  /// Keeps the figures alone, since lists grow with the step; and whether the commands are those of `first`.
  void drop_lists(const StepResult& first) {
    has_other_commands = commands != first.commands;
    commands = {};
    copies = {};
    disk_transfers = {};
    ledger = {};
  }
};

}  // namespace offprof
