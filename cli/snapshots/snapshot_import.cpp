#include "cli/snapshots/snapshot_import.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_map>
#include <utility>
#include <vector>

#include "cli/base/version.h"
#include "cli/reports/next_command.h"
#include "cli/snapshots/snapshot_export.h"
#include "cli/tables/metrics_table.h"
#include "traces/base/error.h"
#include "traces/format/metrics_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

constexpr Nanoseconds kNanosecondsPerMicrosecond = 1000;

/// Builds the step program of a snapshot.
class SnapshotProgram {
 public:
  explicit SnapshotProgram(const DeviceSnapshot& snapshot) : snapshot_(snapshot) {
    for (const SnapshotItem& entry : snapshot.entries) pair(entry);
    for (const SnapshotItem& block : snapshot.blocks)
      if (!open_.contains(block.address)) program_.resident_bytes += block.bytes;
    for (const Bytes bytes : freed_unknown_) {
      program_.storages.push_back({bytes, StorageRole::kResident});
      program_.resident_bytes += bytes;
    }
    open_.clear();
    live_ = peak_ = program_.resident_bytes;
    program_.names.emplace_back("the recorded period");
    add({EventKind::kPhase, 0, 0});
    for (const SnapshotItem& entry : snapshot.entries) follow(entry);
  }

  StepProgram take() { return std::move(program_); }
  Bytes peak_bytes() const { return peak_; }
  Bytes reserved_peak_bytes() const { return most_reserved_ - reserved_ + snapshot_.reserved_bytes; }
  /// Number of blocks that were freed although the snapshot does not have their allocation.
  std::size_t unknown_frees() const { return freed_unknown_.size(); }

 private:
  /// Notes which blocks are older than the entries, and the reserved bytes.
  void pair(const SnapshotItem& entry) {
    if (entry.action == "alloc") open_[entry.address] = 0;
    if (entry.action == "free_completed" && open_.erase(entry.address) == 0)
      freed_unknown_.push_back(entry.bytes);
    if (entry.action == "segment_alloc" || entry.action == "segment_map") reserved_ += entry.bytes;
    if (entry.action == "segment_free" || entry.action == "segment_unmap") reserved_ -= entry.bytes;
    most_reserved_ = std::max(most_reserved_, reserved_);
  }

  void follow(const SnapshotItem& entry) {
    if (entry.action == "alloc") {
      const auto storage = static_cast<std::int32_t>(program_.storages.size());
      program_.storages.push_back({entry.bytes, StorageRole::kActivation});
      open_[entry.address] = storage;
      allocate(storage, entry);
      live_ += entry.bytes;
      peak_ = std::max(peak_, live_);
    } else if (entry.action == "free_completed") {
      const auto found = open_.find(entry.address);
      const bool is_known = found != open_.end();
      const std::int32_t storage = is_known ? found->second : next_freed_++;
      if (is_known) open_.erase(found);
      add({EventKind::kFree, storage, elapsed_until(entry)});
      live_ -= program_.storages[storage].bytes;
    }
  }

  void allocate(std::int32_t storage, const SnapshotItem& entry) {
    const Event alloc{EventKind::kAlloc, storage, elapsed_until(entry)};
    if (entry.place.empty()) return add(alloc);
    const std::int32_t op = name(entry.place);
    add({EventKind::kOpBegin, op, alloc.compute_ns});
    add({EventKind::kAlloc, storage, 0});
    add({EventKind::kOpEnd, op, 0});
  }

  Nanoseconds elapsed_until(const SnapshotItem& entry) {
    const std::int64_t before = std::exchange(last_us_, std::max(last_us_, entry.time_us));
    return before == 0 ? 0 : (last_us_ - before) * kNanosecondsPerMicrosecond;
  }

  std::int32_t name(const std::string& text) {
    const auto [known, is_new] = names_.try_emplace(text, static_cast<std::int32_t>(program_.names.size()));
    if (is_new) program_.names.push_back(text);
    return known->second;
  }

  void add(Event event) { program_.events.push_back(event); }

  const DeviceSnapshot& snapshot_;
  StepProgram program_;
  std::unordered_map<std::int64_t, std::int32_t> open_;  ///< storages by address
  /// Bytes of blocks that are older than the entries and freed by them, in that order; the first storages.
  std::vector<Bytes> freed_unknown_;
  std::unordered_map<std::string, std::int32_t> names_;
  std::int32_t next_freed_ = 0;
  std::int64_t last_us_ = 0;
  Bytes reserved_ = 0, most_reserved_ = 0;  ///< since the first entry
  Bytes live_ = 0, peak_ = 0;
};

}  // namespace

Trace trace_of_snapshot(const DeviceSnapshot& snapshot) {
  SnapshotProgram built(snapshot);
  Trace trace;
  trace.tool_version = program_version();
  trace.environment.device = "cuda";
  trace.environment.device_name = "the device of a memory snapshot";
  trace.model.name = ModelInfo::kMemorySnapshot;
  trace.settings.loss = trace.settings.optimizer = kOfScript;
  trace.settings.steps = 1;
  trace.policy = preset_policy("keep");
  trace.gradients = "not applicable";
  trace.notes.emplace_back(
      "imported from a memory snapshot: it has no saved tensors and no kernels; its operators are "
      "the places that allocated, and its times are those of the allocations");
  if (snapshot.entries.empty())
    trace.notes.emplace_back(
        "the snapshot has no history, so its peak is what was allocated when it was written: call "
        "torch.cuda.memory._record_memory_history() before the run");
  if (built.unknown_frees() > 0)
    trace.notes.push_back(fmt::format(
        "{} blocks are older than the history of the snapshot, which freed them", built.unknown_frees()));
  trace.metrics.device_peak_bytes = built.peak_bytes();
  trace.metrics.device_reserved_peak_bytes = built.reserved_peak_bytes();
  trace.program = built.take();
  trace.metrics.device_resident_bytes = trace.program.resident_bytes;
  return trace;
}

SnapshotImport import_snapshot(const std::string& path, const std::string& output) {
  const DeviceSnapshot snapshot = read_memory_snapshot(read_file(path, kMostSnapshotBytes), path);
  const Trace trace = trace_of_snapshot(snapshot);
  write_trace(output, trace);
  return {.snapshot = path,
          .trace = output,
          .device = snapshot.device,
          .entries = snapshot.entries.size(),
          .metrics = trace.metrics,
          .notes = trace.notes};
}

nlohmann::ordered_json to_json(const SnapshotImport& result) {
  return {{"source", kMemorySnapshot}, {"snapshot", result.snapshot},
          {"trace", result.trace},     {"device", result.device},
          {"entries", result.entries}, {"measured", metrics_to_json(result.metrics)},
          {"notes", result.notes}};
}

std::string to_text(const SnapshotImport& result, const Page& page) {
  std::string text =
      wrap(fmt::format("{}: memory of device {}, {} entries", result.snapshot, result.device, result.entries),
           page.width, 0) +
      "\n\n" + metrics_table({{"snapshot", result.metrics}}, page);
  for (const std::string& note : result.notes) text += "  note: " + wrap(note, page.width, 8) + "\n";
  if (result.trace == "-") return text;
  return text + "\n" + next_line({"report", result.trace, "-o", "report.html"}) + "\n" +
         fmt::format("Baseline of a gate: {}\n",
                     command_line({"gate", result.trace, "--update", "--baseline", "baseline.json"}));
}

}  // namespace offprof
