#pragma once

#include <cstdint>
#include <optional>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "engine/storage/compressed_tier.h"
#include "engine/storage/disk_tier.h"
#include "profiler/recording/activity.h"
#include "profiler/recording/recorded_pass.h"
#include "profiler/recording/step_mark.h"
#include "traces/base/device_counts.h"
#include "traces/base/units.h"
#include "traces/model/allocator_state.h"
#include "traces/model/copy_record.h"
#include "traces/model/ledger.h"

namespace offprof {

/// Figures of one training step.
struct StepResult {
  Nanoseconds step_time_ns = 0;
  Nanoseconds exposed_ns = 0;
  std::optional<Nanoseconds> busy_ns;  ///< time in which the compute stream had work; nullopt: not known
  Bytes device_peak_bytes = 0;
  Bytes device_resident_bytes = 0;
  std::optional<CacheUse> cache_use;
  DeviceCounts model_counts;  ///< of the model, without the engine
  Bytes host_peak_bytes = 0;
  std::optional<Bytes> host_reserved_bytes;  ///< pinned; nullopt: no host memory is pinned
  Bytes d2h_bytes = 0;
  Bytes h2d_bytes = 0;
  Bytes disk_peak_bytes = 0;  ///< this and the next two are 0 if no disk was used
  Bytes disk_write_bytes = 0, disk_read_bytes = 0;
  /// size of disk_write_bytes after compression; nullopt: no compression
  std::optional<StoredBytes> disk_stored;
  int disk_refusals = 0;        ///< times that the disk was full; those tensors went to host memory or stayed
  int refused_reloads = 0;      ///< reloads without device memory, which were put off or made room for
  Nanoseconds d2h_busy_ns = 0;  ///< sum of the copies' durations
  Nanoseconds h2d_busy_ns = 0;
  Ledger ledger;
  std::vector<Command> commands;
  bool has_other_commands = false;  ///< commands differ from those of the first of the steps trained in a row
  std::vector<CopyRecord> copies;
  std::vector<DiskRecord> disk_transfers;
  RecordedPass recording;
  StepMarks marks;  ///< of a step with Recording::kMarks
  /// Duration of each phase by name, for a step that is not recorded. Empty on a virtual GPU, where a mark
  /// also takes host time.
  std::vector<std::pair<std::string_view, Nanoseconds>> phases;
  GpuActivity gpu;  ///< of a traced step: the GPU's activity, on the tracer's clock

  /// Drops the lists, since they grow with the step, and keeps the figures. Notes if the commands differ from
  /// those of `first`.
  void drop_lists(const StepResult& first) {
    has_other_commands = commands != first.commands;
    commands = {};
    copies = {};
    disk_transfers = {};
    ledger = {};
  }
};

}  // namespace offprof
