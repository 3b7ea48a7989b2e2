#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "cli/terminal/terminal.h"
#include "traces/base/time_range.h"
#include "traces/base/units.h"
#include "traces/io/json_access.h"

namespace offprof {

/// Collectives of one kind that a rank has called.
struct CollectiveSum {
  std::string name;  ///< `all_reduce`
  std::int64_t calls = 0;
  Bytes bytes = 0;  ///< sum of the messages, counted as nccl-tests does
  Nanoseconds time_ns = 0;
  TimeRange range{};  ///< of the sum of real durations
};

/// Collectives of a rank.
struct RankCollectives {
  std::int64_t communicators = 0;  ///< of NCCL: the most at one time
  Nanoseconds exposed_ns = 0;      ///< the compute stream ran collectives or waited for them
  std::vector<CollectiveSum> sums{};
  std::string mismatch{};  ///< a collective that differs from that of a rank which ran before; empty: none
};

/// Reads what the Python package writes of the virtual GPU's collectives. Members that are missing are 0.
/// Throws Error (input) if they are of another type.
RankCollectives parse_collectives(const JsonValue& report);

/// Returns a warning of the mismatch; empty if there is none.
std::string mismatch_warning(const RankCollectives& collectives);
/// Returns a warning of a message between ranks that has no counterpart: see unmatched_messages.
std::string unmatched_warning(const std::string& message);

/// Estimated range of the memory that NCCL takes beside PyTorch's allocator.
struct NcclMemory {
  Bytes least = 0, most = 0;

  bool operator==(const NcclMemory&) const = default;
};

/// Estimates NCCL's memory from the number of communicators. Reports of users differ: 544 MB for two cards
/// (NCCL issue 964) up to 6 GB for three communicators (issue 864), or 2 GB each. The all-to-all of issue
/// 1685 is above.
NcclMemory estimate_nccl_memory(std::int64_t communicators);

/// Ranks with their collectives, which must outlive it.
using RanksWithCollectives = std::vector<std::pair<int, const RankCollectives*>>;

/// Returns a table with a row for each kind of collective of each rank; empty if there are none.
std::string collective_table(const RanksWithCollectives& ranks, const Page& page);
/// Returns what the figures of collectives mean, and the estimate of NCCL's memory on the rank that has the
/// most communicators.
std::string collective_notes(const RanksWithCollectives& ranks);

nlohmann::ordered_json to_json(const RankCollectives& collectives);

}  // namespace offprof
