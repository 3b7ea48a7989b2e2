#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "cli/terminal/terminal.h"
#include "traces/base/units.h"
#include "traces/format/policy_io.h"
#include "traces/model/link.h"

namespace offprof {

/// Value of `export --to` and `import --from` for PyTorch's memory snapshots.
inline constexpr const char* kMemorySnapshot = "memory-snapshot";

/// Result of `export --to memory-snapshot`.
struct SnapshotExport {
  std::string trace{}, snapshot{};  ///< paths
  std::string policy_name{};        ///< empty: the trace's own policy
  Bytes file_bytes = 0;
  Bytes device_peak_bytes = 0;
  std::optional<Bytes> reserved_peak_bytes{};  ///< nullopt: the device has no caching allocator
  bool times_are_modelled = false;
};

/// Replays the step of a trace under a policy (nullopt: the trace's own) over `link` (nullopt: that of the
/// trace), and writes its memory snapshot to `output`. Throws Error (input) if the trace cannot be read, the
/// policy is for another step, or the file cannot be written.
SnapshotExport export_snapshot(const std::string& trace_path, const std::optional<PolicyFile>& policy,
                               const std::optional<Link>& link, const std::string& output);

nlohmann::ordered_json to_json(const SnapshotExport& result);
std::string to_text(const SnapshotExport& result, const Page& page);

}  // namespace offprof
