#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/reports/rank_collectives.h"
#include "cli/terminal/terminal.h"
#include "traces/base/units.h"

namespace offprof {

/// Memory of a process by PyTorch's own count (torch.cuda.memory_stats): peaks over the whole process.
struct ProcessPeaks {
  Bytes allocated = 0, reserved = 0, requested = 0;
};

/// Process that used the virtual GPU, or that could not.
struct GpuProcess {
  std::int64_t pid = 0;
  std::vector<std::string> command;
  /// The figures below are known only if the process ended by itself or by SIGTERM.
  bool ended = false;
  ProcessPeaks peaks;
  std::int64_t out_of_memory_errors = 0;
  bool is_out_of_memory() const { return out_of_memory_errors > 0; }
  Nanoseconds modelled_time_ns = 0;  ///< on the virtual clock
  std::optional<int> rank;           ///< nullopt: it is no rank of many
  RankCollectives collectives;
  std::vector<std::string> unwritten_calls, unknown_sizes;
  std::vector<std::string>
      value_reads;  ///< operators that read values back from the device, where they are zeros
  std::vector<std::string> notes;
  std::string problem;  ///< why the virtual GPU could not be opened; empty: it was
};

/// Result of `offprof exec`.
struct ExecReport {
  std::string profile;      ///< `h200`
  std::string device_name;  ///< `NVIDIA H200`
  Bytes memory_bytes = 0;   ///< capacity of the device, or --device-memory
  std::vector<std::string> command;
  std::optional<int> world_size;  ///< of the job whose ranks ran one after the other; nullopt: no ranks
  int nodes = 1;
  int exit_status = 0;                            ///< of the command; 128 + signal if a signal ended it
  std::vector<int> ranks_not_run{};               ///< since a rank before them failed
  std::vector<std::string> unmatched_messages{};  ///< sends and receives without a counterpart
  std::vector<std::string> advise_options{};      ///< of `advise`, for the same device and memory
  std::vector<GpuProcess> processes;              ///< in the order in which they began to use the GPU
};

nlohmann::ordered_json to_json(const ExecReport& report);
std::string to_text(const ExecReport& report, const Page& page);

/// Reads the report of one process, which python/offprof/process_report.py writes. `where` names it in
/// errors. Throws Error (input) if it is not such a report.
GpuProcess parse_process_report(const std::string& text, const std::string& where);

}  // namespace offprof
