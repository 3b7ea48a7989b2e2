#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/reports/exec_report.h"
#include "cli/terminal/terminal.h"
#include "traces/base/units.h"

namespace offprof {

/// Estimated range of the memory that NCCL takes beside PyTorch's allocator.
struct NcclMemory {
  Bytes least = 0, most = 0;

  bool operator==(const NcclMemory&) const = default;
};

/// Estimates NCCL's memory from the number of communicators. Reports of users differ: 544 MB for two cards
/// (NCCL issue 964) up to 6 GB for three communicators (issue 864), or 2 GB each. The all-to-all of issue
/// 1685 is above.
NcclMemory estimate_nccl_memory(std::int64_t communicators);

/// Returns the table of ranks, the table of their collectives and the estimate of NCCL's memory; empty if no
/// process is a rank with figures.
std::string rank_text(const ExecReport& report, const Page& page);

/// Returns what `to_json` of a report tells about a process that is a rank.
nlohmann::ordered_json rank_json(const GpuProcess& process);

}  // namespace offprof
