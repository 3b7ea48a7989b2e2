#include "simulator/steps/policy_sample.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <utility>

#include "traces/base/check.h"

namespace offprof {
namespace {

constexpr std::int64_t kMostStashed = 13;
/// Kinds of settings, which are sampled in turn. Each kind has points of its own, so it covers its ranges,
/// however many settings there are.
enum class Kind { kThreshold, kPlan, kTrl };
constexpr std::array kTurns = {Kind::kThreshold, Kind::kPlan, Kind::kThreshold, Kind::kTrl,
                               Kind::kThreshold, Kind::kPlan, Kind::kThreshold};

/// A point in the space of settings; each coordinate is in [0, 1).
struct Point {
  double choice;   ///< which tensors move: a threshold, or a plan's share
  double stash;    ///< size of the stash
  double unit;     ///< unit of the stash: a count or bytes
  double window;   ///< size of the window, or no window
  double streams;  ///< one stream or two
};

/// Returns the index-th point of a sequence that covers the space evenly, wherever the sequence ends. The
/// step along each axis is a power of 1/g, where g^6 = g + 1 (M. Roberts, "The unreasonable effectiveness of
/// quasirandom sequences", 2018).
Point spread_evenly(std::size_t index) {
  constexpr double kRoot = 1.1347241384015194, kStart = 0.5;
  double step = 1;
  const auto next = [&] {
    step /= kRoot;
    const double place = kStart + static_cast<double>(index) * step;
    return place - std::floor(place);
  };
  Point point{};
  // In this order about twenty points are enough to be even along each axis.
  for (double* axis : {&point.stash, &point.choice, &point.window, &point.streams, &point.unit})
    *axis = next();
  return point;
}

/// Returns the storage sizes of the saved tensors that may move, one for each tensor, in ascending order.
std::vector<Bytes> movable_sizes(const Step& step) {
  std::vector<Bytes> sizes;
  for (const PackRequest& request : step.requests())
    if (request.movability == Movability::kMovable) sizes.push_back(request.storage_bytes);
  std::sort(sizes.begin(), sizes.end());
  return sizes;
}

template <typename T>
T at_share(const std::vector<T>& values, double share) {
  return values[static_cast<std::size_t>(share * static_cast<double>(values.size()))];
}

/// Returns a plan that moves whole storages, about this share of them.
std::vector<std::int32_t> plan_of_share(const Step& step, double share) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  std::vector<std::int32_t> plan;
  for (std::size_t tensor = 0; tensor < step.requests().size(); ++tensor) {
    const double place = kGoldenRatio * static_cast<double>(step.requests()[tensor].storage);
    if (place - std::floor(place) < share) plan.push_back(static_cast<std::int32_t>(tensor));
  }
  return plan;
}

std::int64_t stash_count_at(double share) {
  return static_cast<std::int64_t>(share * static_cast<double>(kMostStashed + 1));
}

/// Returns sizes from three doublings below the largest storage to three doublings above it.
Bytes stash_bytes_at(double share, Bytes largest) {
  constexpr double kDoublings = 3;
  return static_cast<Bytes>(static_cast<double>(largest) * std::exp2(kDoublings * (2 * share - 1)));
}

/// Returns 0 (on demand) for half of the shares; for the rest, one to eight times the largest storage.
Bytes prefetch_bytes_at(double share, Bytes largest) {
  constexpr double kOnDemand = 0.5, kDoublings = 3;
  if (share < kOnDemand) return 0;
  return static_cast<Bytes>(static_cast<double>(largest) *
                            std::exp2(kDoublings * (share - kOnDemand) / (1 - kOnDemand)));
}

Policy trl_sample(const std::vector<Bytes>& sizes, const Point& point) {
  Policy policy = preset_policy("trl");
  policy.threshold_bytes = at_share(sizes, point.choice);
  policy.stash_count = stash_count_at(point.stash);
  return policy;
}

Policy offload_sample(const Step& step, const std::vector<Bytes>& sizes, const Point& point, bool is_plan) {
  constexpr double kStashInBytes = 1.0 / 3, kOneStream = 0.25;
  Policy policy = preset_policy("offload");
  if (is_plan)
    policy.tensors = plan_of_share(step, point.choice);
  else
    policy.threshold_bytes = at_share(sizes, point.choice);
  if (point.unit < kStashInBytes)
    policy.stash_bytes = stash_bytes_at(point.stash, sizes.back());
  else
    policy.stash_count = stash_count_at(point.stash);
  policy.prefetch_bytes = prefetch_bytes_at(point.window, sizes.back());
  if (point.streams < kOneStream) policy.copy_streams = 1;
  return policy;
}

}  // namespace

std::vector<Policy> spanning_policies(const Step& step, std::size_t count) {
  std::vector<Policy> policies = {preset_policy("keep"), preset_policy("offload"), preset_policy("trl")};
  OFFPROF_CHECK(count >= policies.size());
  const std::vector<Bytes> sizes = movable_sizes(step);
  if (sizes.empty()) return {policies.front()};
  std::map<Kind, std::size_t> points_taken;
  for (std::size_t turn = 0; policies.size() < count; ++turn) {
    const Kind kind = kTurns[turn % kTurns.size()];
    const Point point = spread_evenly(++points_taken[kind]);
    policies.push_back(kind == Kind::kTrl ? trl_sample(sizes, point)
                                          : offload_sample(step, sizes, point, kind == Kind::kPlan));
    policies.back().name = "sample";
  }
  return policies;
}

namespace {

/// Returns one rule for each dtype that the placement accepts. If `last` is given, the rules apply to the
/// step's tensors up to it.
std::vector<PolicyRule> rules_of(const Placement& placement, const TransformProfile* profile,
                                 std::optional<SavedId> last) {
  PolicyRule rule;
  rule.placement = placement;
  rule.last = last;
  if (profile == nullptr) return {rule};
  std::set<std::string> dtypes;
  for (const TransformCost& cost : profile->costs) dtypes.insert(cost.dtype);
  std::vector<PolicyRule> rules;
  for (const std::string& dtype : dtypes) {
    rule.dtype = dtype;
    rules.push_back(rule);
  }
  return rules;
}

struct PlacementOf {
  Placement placement;
  const TransformProfile* profile = nullptr;
};

std::vector<PlacementOf> placements_for(const StepProgram& program,
                                        std::span<const TransformProfile> profiles,
                                        std::optional<Place> disk) {
  std::vector<PlacementOf> placements;
  const auto add = [&](const TransformProfile* profile, Place place) {
    placements.push_back({{profile == nullptr ? "" : profile->name, place}, profile});
  };
  if (disk) add(nullptr, *disk);
  if (program.recomputations && !program.recomputations->empty()) add(nullptr, Place::kRecompute);
  for (const TransformProfile& profile : profiles) {
    add(&profile, Place::kDevice);
    add(&profile, Place::kHost);
    if (disk) add(&profile, *disk);
  }
  return placements;
}

}  // namespace

std::vector<Policy> ruled_policies(const StepProgram& program, std::span<const TransformProfile> profiles,
                                   std::optional<Place> disk) {
  constexpr std::int64_t kStash = 2;
  constexpr Bytes kWindowInTensors = 2;
  Bytes largest = 0;
  for (const SavedTensor& saved : program.saved) largest = std::max(largest, saved.bytes);
  std::vector<Policy> policies;
  const auto add = [&](std::vector<PolicyRule> rules) {
    Policy policy = preset_policy("offload");
    policy.name = "rules";
    policy.threshold_bytes.reset();
    policy.rules = std::move(rules);
    if (policies.size() % 2 == 1) {
      policy.stash_count = kStash;
      policy.prefetch_bytes = kWindowInTensors * largest;
    }
    policies.push_back(std::move(policy));
  };
  const auto half = static_cast<SavedId>(program.saved.size() / 2);
  for (const auto& [placement, profile] : placements_for(program, profiles, disk)) {
    add(rules_of(placement, profile, std::nullopt));
    std::vector<PolicyRule> mixed = rules_of(placement, profile, half);
    mixed.emplace_back().placement = {"", Place::kHost};
    add(std::move(mixed));
  }
  return policies;
}

}  // namespace offprof
