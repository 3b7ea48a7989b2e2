#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/terminal/terminal.h"
#include "engine/tensors/files/memory_snapshot_file.h"
#include "traces/model/trace.h"

namespace offprof {

/// Returns a trace of the memory in a snapshot, which `view`, `report`, `diff` and `gate` read: its
/// allocations and frees in their order, each under an operator with the name of its place. It has no saved
/// tensors, since a snapshot has none, so that there is nothing to offload. Its model is
/// ModelInfo::kMemorySnapshot, so that a gate compares it with other snapshots.
Trace trace_of_snapshot(const DeviceSnapshot& snapshot);

/// Result of `import --from memory-snapshot`.
struct SnapshotImport {
  std::string snapshot{}, trace{};  ///< paths
  int device = 0;
  std::size_t entries = 0;
  Metrics metrics{};
  std::vector<std::string> notes{};
};

/// Reads a snapshot and writes its trace to `output`. Throws Error (input) if it cannot be read or written.
SnapshotImport import_snapshot(const std::string& path, const std::string& output);

nlohmann::ordered_json to_json(const SnapshotImport& result);
std::string to_text(const SnapshotImport& result, const Page& page);

}  // namespace offprof
