#pragma once

#include <cstddef>
#include <optional>
#include <vector>

#include "simulator/tuner/placement_search.h"
#include "simulator/tuner/settings/frontier.h"
#include "simulator/tuner/settings/replay_tree.h"
#include "traces/base/units.h"

namespace offprof {

/// Summary of the search over thresholds, stashes and windows.
struct FamilySearch {
  double settings = 0;       ///< upper bound on the settings with different effects
  std::size_t replayed = 0;  ///< the others equal one of these, or provably are no better
  bool is_whole = true;      ///< true: all settings were covered; false: a sample
  /// A whole search may leave out settings that are faster than the Pareto frontier by at most this much,
  /// because waiting for copies takes time of its own and slows the compute after it (slack_of_waits).
  Nanoseconds slack_ns = 0;
  /// True if no setting is better than those of the Pareto frontier. That is not certain, even after a whole
  /// search, in four cases: there is slack; copies slow compute or copies of the other direction down, since
  /// a copy made earlier may slow down others; a copy made earlier may delay a command of the program
  /// (Step::meets_copies); or a caching allocator takes more than the peak, since the search goes by the
  /// peak.
  bool is_exact = true;
};

struct PlanSearchSummary {
  std::size_t versions = 0;  ///< storage contents that may move: a plan selects among these
  std::size_t mixtures = 0;  ///< sets of recomputed tensors with which plans were searched
  std::size_t replayed = 0;
  bool is_whole = false;  ///< all plans without recomputation were covered
  /// True if no plan at all is better for the goal. Same exceptions as FamilySearch::is_exact.
  bool is_exhaustive = false;
};

/// Family of policies of the offload scheduler for which a bound holds, with any stash, window and streams.
enum class BoundFamily {
  kOffload,             ///< tensors stay on the device or move to host memory
  kOffloadAndRecompute  ///< tensors may also be recomputed
};

/// Lower bound under the goal: on the step time in nanoseconds if there is a memory budget, otherwise on the
/// device peak in bytes. It holds for every policy of the family.
struct GoalBound {
  double value = 0;
  double gap = 0;  ///< (chosen policy's step time, or the device memory that it takes, - value) / value
  std::size_t rows = 0;
  BoundFamily family = BoundFamily::kOffload;
};

/// Parts of the chosen policy's step time beyond that of the step without offloading, and the possible gains.
enum class Constraint { kD2hBandwidth, kH2dBandwidth, kLatency, kLaunch };
struct Relief {
  Constraint constraint = Constraint::kD2hBandwidth;
  Nanoseconds gain_ns = 0;  ///< how much shorter the same policy's step is without this constraint
};

/// The limit of the goal that keeps the chosen policy from being better.
enum class GoalLimit {
  kNone,          ///< none: no known policy would be better under another limit
  kDeviceMemory,  ///< the budget: a known policy is faster and takes more of the device
  kSlowdown       ///< the slowdown: a known policy takes less of the device and is slower
};

/// The next useful amount of device memory. Among the Pareto frontier's candidates above the chosen one, it
/// is the one with the largest gain per byte. A lower estimate, because no search ran under that budget.
struct MemoryPrice {
  Bytes more_bytes = 0;
  Nanoseconds gain_ns = 0;
};

/// The best of the Pareto frontier's policies for the goal over a faster link. A lower estimate, because no
/// search ran over that link.
struct LinkPrice {
  double factor = 2;
  Candidate best;
};

/// Limits of the chosen policy, and the prices of moving them.
struct ChoiceExplanation {
  std::vector<Relief> reliefs;  ///< largest first; only those above 0
  GoalLimit binding = GoalLimit::kNone;
  bool fills_host = false;  ///< the policy keeps tensors because the host cap has no room for them
  std::optional<MemoryPrice> memory_price;
  std::optional<LinkPrice> link_price;
};

struct TuneResult {
  Candidate keep;  ///< nothing offloaded: the baseline of all comparisons
  Candidate trl;   ///< TRL's constants
  /// Pareto frontier over device bytes (device_bytes_taken) and step time of all policies tried, least memory
  /// first. If a caching allocator takes more than the peak, it covers only those whose peak is lowest or
  /// nearly so.
  std::vector<Candidate> frontier;
  /// The same of the policies that only offload, by a threshold.
  std::vector<Candidate> by_threshold;
  std::optional<Candidate> chosen;  ///< nullopt: no policy is within the goal's limit
  /// If the chosen policy has a plan, which holds for one program only: the nearest policy by rules, which
  /// takes its place in other programs. Its figures are those in the recorded program.
  std::optional<Candidate> fallback;
  std::size_t policies_tried = 0;  ///< number of replayed policies in total
  ReplayEffort effort;             ///< of the search for policies
  bool slows_compute = false;      ///< copies slow compute down on this device
  bool meets_copies = false;       ///< the program itself copies over the link, or waits for all streams
  FamilySearch family;
  std::optional<PlanSearchSummary> plans;  ///< set if plans were searched
  /// Lower bounds for every policy of the offload scheduler. The memory that the step program itself holds,
  /// with every movable tensor off the device from its save to its first unpack; and the step time without
  /// any wait for copies.
  Bytes device_peak_bound_bytes = 0;
  Nanoseconds step_time_bound_ns = 0;
  std::size_t least_peak_event = 0;  ///< index in Step::events() of the event that reaches the peak bound
  /// Set if plans were searched and the chosen policy is of a family for which there is a bound: it neither
  /// encodes tensors nor puts them on a disk.
  std::optional<GoalBound> goal_bound;
  std::optional<PlacementSearchResult> placements;  ///< set if they were searched
  ChoiceExplanation explanation;                    ///< of the chosen policy; empty if there is none
};

/// Returns the candidate of the Pareto frontier that takes the least device memory (device_bytes_taken).
const Candidate& least_memory(const TuneResult& result);

/// Returns true if the candidate has rules, which assign placements to tensors.
bool has_rules(const Candidate& candidate);

/// Returns true if the candidate names tensors, which no threshold can express.
bool is_plan(const Candidate& candidate);

}  // namespace offprof
