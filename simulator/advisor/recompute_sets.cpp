#include "simulator/advisor/recompute_sets.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>

#include "traces/base/units.h"

namespace offprof {
namespace {

/// More groups would only lengthen the search: models have few operators whose results are large.
constexpr std::size_t kMostGroups = 6;
/// Least share of the recomputable bytes that a group is tried for.
constexpr double kLeastShare = 0.02;

struct RecomputableGroup {
  PolicyRule rule;
  Bytes bytes = 0;
  Nanoseconds time_ns = 0;

  double time_per_byte() const { return static_cast<double>(time_ns) / static_cast<double>(bytes); }
};

using GroupKey = std::tuple<std::int32_t, std::string, std::int64_t, Bytes>;

std::vector<RecomputableGroup> groups_of(const StepProgram& program) {
  std::map<GroupKey, RecomputableGroup> groups;
  for (const Recomputation& recomputation : program.recomputations.value_or(std::vector<Recomputation>())) {
    const SavedTensor& saved = program.saved[static_cast<std::size_t>(recomputation.tensor)];
    if (saved.storage < 0 || saved.movability != Movability::kMovable) continue;
    const Bytes bytes = program.storages[static_cast<std::size_t>(saved.storage)].bytes;
    if (bytes <= 0) continue;
    const auto rank = static_cast<std::int64_t>(saved.layout->sizes.size());
    RecomputableGroup& group = groups[{saved.op, saved.layout->dtype, rank, bytes}];
    group.rule = {.op = program.names[static_cast<std::size_t>(saved.op)],
                  .dtype = saved.layout->dtype,
                  .rank = rank,
                  .min_bytes = bytes,
                  .max_bytes = bytes,
                  .placement = {"", Place::kRecompute}};
    group.bytes += bytes;
    group.time_ns += recomputation.use.compute_ns;
  }
  std::vector<RecomputableGroup> list;
  for (auto& [key, group] : groups) list.push_back(std::move(group));
  return list;
}

/// Removes groups with little memory, then keeps the largest ones.
void keep_large(std::vector<RecomputableGroup>& groups) {
  Bytes total = 0;
  for (const RecomputableGroup& group : groups) total += group.bytes;
  std::erase_if(groups, [&](const RecomputableGroup& group) {
    return static_cast<double>(group.bytes) < kLeastShare * static_cast<double>(total);
  });
  std::ranges::stable_sort(groups, std::ranges::greater(), &RecomputableGroup::bytes);
  if (groups.size() > kMostGroups) groups.resize(kMostGroups);
}

}  // namespace

std::vector<std::vector<PolicyRule>> recompute_sets(const StepProgram& program) {
  std::vector<RecomputableGroup> groups = groups_of(program);
  keep_large(groups);
  std::ranges::stable_sort(groups, {}, &RecomputableGroup::time_per_byte);
  std::vector<std::vector<PolicyRule>> sets(1);
  for (const RecomputableGroup& group : groups) {
    std::vector<PolicyRule> rules = sets.back();
    rules.push_back(group.rule);
    sets.push_back(std::move(rules));
  }
  return sets;
}

}  // namespace offprof
