#pragma once

#include <cstddef>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "simulator/trace_steps.h"
#include "simulator/tuner/frontier.h"
#include "simulator/tuner/placement_search.h"
#include "simulator/tuner/replay_tree.h"
#include "traces/link.h"
#include "traces/metrics.h"
#include "traces/policy.h"

namespace offprof {

/// What the tuner looks for, and how far it goes.
struct TuneGoal {
  /// The least step time within that much device memory: the peak, or, where a caching allocator stands
  /// between, all that it takes of the device. Or, where it is nullopt, the least device memory within
  /// `max_slowdown` of the step time without offloading (0.05: five percent).
  std::optional<Bytes> memory_budget_bytes;
  double max_slowdown = 0.05;
  std::optional<Bytes> host_memory_bytes;  ///< cap that every policy is given
  std::optional<Bytes> disk_memory_bytes;  ///< likewise of the disk, where the link knows of one
  /// Whether to search sets of tensors too, beyond what a threshold can say.
  bool searches_plans = false;
  /// Whether placements may lose something of what they pack. Placements are searched where the trace says
  /// what packing takes, or the link knows of a disk.
  bool allows_loss = false;
  unsigned threads = 0;  ///< 0: one a core; the result does not depend on it
  /// Whether policies that decide alike at the step's beginning share its replay. The result does not depend
  /// on it.
  bool shares_replays = true;
};

/// How the thresholds, stashes and windows were gone through.
struct FamilySearch {
  double settings = 0;       ///< that can differ in consequence, at most
  std::size_t replayed = 0;  ///< the others are equal to one of them, or shown to be no better
  bool is_whole = true;      ///< all settings were gone through; false: they are sampled
  /// A search that is whole leaves out settings that are faster than the frontier by so much at most, as
  /// waiting for copies takes time of its own (slack_of_waits).
  Nanoseconds slack_ns = 0;
  /// No setting is better than those of the frontier. Not known to be so, even of a search that is whole,
  /// where there is slack; where copies slow compute down: there a copy that is made earlier may slow other
  /// compute down; nor where a caching allocator takes more than the peak, which is what the search goes by.
  bool is_exact = true;
};

struct PlanSearchSummary {
  std::size_t versions = 0;  ///< storage contents that may move: what a plan chooses among
  std::size_t replayed = 0;
  bool is_whole = false;       ///< all plans were gone through
  bool is_exhaustive = false;  ///< no plan at all is better for the goal; under the same provisos
};

/// No policy of the offload scheduler comes below it under the goal: a step time in nanoseconds where there
/// is a memory budget, else a device peak in bytes.
struct GoalBound {
  double value = 0;
  double gap = 0;  ///< (what was chosen comes to or takes of the device - value) / value
  std::size_t rows = 0;
};

/// What the step time of the chosen policy consists of beyond the step without offloading, and what would
/// better it.
enum class Constraint { kD2hBandwidth, kH2dBandwidth, kLatency, kLaunch };
struct Relief {
  Constraint constraint = Constraint::kD2hBandwidth;
  Nanoseconds gain_ns = 0;  ///< the same policy's step is shorter by that were it no constraint
};

/// Which limit of the goal holds the chosen policy where it is.
enum class GoalLimit {
  kNone,          ///< none: no policy is known that another limit would let be better
  kDeviceMemory,  ///< the budget: a faster policy is known that takes more of the device
  kSlowdown       ///< the slowdown: a policy is known that takes less of the device and is slower
};

/// The next useful amount of device memory: of the frontier's candidates above the chosen one, the one that
/// gains most per byte. A lower estimate: under that budget nothing was searched.
struct MemoryPrice {
  Bytes more_bytes = 0;
  Nanoseconds gain_ns = 0;
};

/// The best of the frontier's policies for the goal, were the link faster. A lower estimate: over that link
/// nothing was searched.
struct LinkPrice {
  double factor = 2;
  Candidate best;
};

struct TuneResult {
  Candidate keep;  ///< nothing offloaded: what all is compared with
  Candidate trl;   ///< TRL's constants
  /// Of all that were tried none takes less of the device (device_bytes_taken) at as little time; that which
  /// takes least first. Where a caching allocator takes more than the peak: of those tried whose peak is
  /// least or near it.
  std::vector<Candidate> frontier;
  std::optional<Candidate> chosen;  ///< nullopt: no policy fits the budget
  std::size_t policies_tried = 0;   ///< replayed, in all
  ReplayEffort effort;              ///< of the search for policies
  bool slows_compute = false;       ///< copies do, on this device
  FamilySearch family;
  std::optional<PlanSearchSummary> plans;  ///< where they were searched
  /// No policy of the offload scheduler goes below: the memory that the program itself holds, with every
  /// movable tensor away from its save to its request; and the time with no wait for any copy.
  Bytes device_peak_bound_bytes = 0;
  Nanoseconds step_time_bound_ns = 0;
  std::size_t least_peak_event = 0;  ///< index in Step::events() at which the peak bound is reached
  /// Where plans were searched and a policy was chosen that packs nothing: packing may go below it.
  std::optional<GoalBound> goal_bound;
  std::optional<PlacementSearchResult> placements;  ///< where they were searched
  std::vector<Relief> reliefs;  ///< of the chosen policy, largest first; none where nothing is gained
  GoalLimit binding = GoalLimit::kNone;
  bool fills_host = false;  ///< the chosen policy keeps tensors that the host cap has no room for
  std::optional<MemoryPrice> memory_price;
  std::optional<LinkPrice> link_price;
};

/// Searches thresholds, stashes and windows, and, if wanted, per-tensor plans, and picks by the goal.
/// docs/tuning.md says how. Every candidate is a replay's prediction.
/// `progress` hears what is being done, a phrase each time.
TuneResult tune(
    const TraceSteps& steps, const Link& link, const TuneGoal& goal,
    const std::function<void(const std::string&)>& progress = [](const std::string&) {});

/// The one of the frontier that takes the least of the device (device_bytes_taken).
const Candidate& least_memory(const TuneResult& result);

/// Whether the candidate has rules, which say what becomes of which tensors.
bool has_rules(const Candidate& candidate);

/// Whether the candidate names tensors, which no threshold can say.
bool is_plan(const Candidate& candidate);

}  // namespace offprof
