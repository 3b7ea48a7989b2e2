#include "simulator/policy_sample.h"

#include <algorithm>
#include <cmath>
#include <cstdint>

#include "traces/check.h"

namespace offprof {
namespace {

constexpr std::int64_t kMostStashed = 13;
/// One setting in so many is a plan.
constexpr std::size_t kPlanEvery = 4;

/// The index-th point of the van der Corput sequence to `base`, in [0, 1): any stretch of the sequence covers
/// the range evenly (J. H. Halton, "On the efficiency of certain quasi-random sequences of points", 1960).
double spread_evenly(std::size_t index, std::size_t base) {
  double result = 0, share = 1;
  for (; index > 0; index /= base) {
    share /= static_cast<double>(base);
    result += share * static_cast<double>(index % base);
  }
  return result;
}

/// Bytes of the storages that may move, from small to large, one for each saved tensor.
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

/// About that share of the storages, whole storages.
std::vector<std::int32_t> plan_of_share(const Step& step, double share) {
  constexpr double kGoldenRatio = 0.6180339887498949;
  std::vector<std::int32_t> plan;
  for (std::size_t tensor = 0; tensor < step.requests().size(); ++tensor) {
    const double place = kGoldenRatio * static_cast<double>(step.requests()[tensor].storage);
    if (place - std::floor(place) < share) plan.push_back(static_cast<std::int32_t>(tensor));
  }
  return plan;
}

Policy sample(const Step& step, const std::vector<Bytes>& sizes, std::size_t index) {
  constexpr std::size_t kBases[] = {2, 3, 5};  // prime to each other: the axes are independent
  const double threshold = spread_evenly(index, kBases[0]);
  const double stash = spread_evenly(index, kBases[1]);
  const double window = spread_evenly(index, kBases[2]);
  Policy policy = preset_policy("offload");
  policy.name = "sample";
  if (index % kPlanEvery == 0)
    policy.tensors = plan_of_share(step, 1 - threshold);
  else
    policy.threshold_bytes = at_share(sizes, threshold);
  policy.stash_count = static_cast<std::int64_t>(stash * static_cast<double>(kMostStashed + 1));
  // Half of them on demand; from the largest storage to several of them.
  constexpr double kOnDemand = 0.5, kMostAhead = 8;
  if (window >= kOnDemand)
    policy.prefetch_bytes = static_cast<Bytes>(static_cast<double>(sizes.back()) *
                                               std::pow(kMostAhead, (window - kOnDemand) / (1 - kOnDemand)));
  return policy;
}

}  // namespace

std::vector<Policy> spanning_policies(const Step& step, std::size_t count) {
  std::vector<Policy> policies = {preset_policy("keep"), preset_policy("offload"), preset_policy("trl")};
  OFFPROF_CHECK(count >= policies.size());
  const std::vector<Bytes> sizes = movable_sizes(step);
  if (sizes.empty()) return {policies.front()};
  for (std::size_t index = 1; policies.size() < count; ++index)
    policies.push_back(sample(step, sizes, index));
  return policies;
}

}  // namespace offprof
