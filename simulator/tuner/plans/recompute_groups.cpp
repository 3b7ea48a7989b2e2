#include "simulator/tuner/plans/recompute_groups.h"

#include <algorithm>
#include <map>
#include <string>
#include <tuple>
#include <utility>

namespace offprof {
namespace {

Nanoseconds time_of(const TransformUse& use) {
  return std::max({use.compute_ns, use.work.stream_ns, Nanoseconds{1}});
}

/// Returns, by saved tensor, the version that it views; kNoEvent: it may not move.
std::vector<std::size_t> versions_of_tensors(const StepProgram& program,
                                             const std::vector<MovableVersion>& versions) {
  std::vector<std::size_t> version_of(program.saved.size(), kNoEvent);
  for (std::size_t v = 0; v < versions.size(); ++v)
    for (const SavedId tensor : versions[v].tensors) version_of[static_cast<std::size_t>(tensor)] = v;
  return version_of;
}

PolicyRule rule_for(const StepProgram& program, const SavedTensor& saved) {
  PolicyRule rule;
  rule.op = program.names[saved.op];
  rule.dtype = saved.layout->dtype;
  rule.rank = static_cast<std::int64_t>(saved.layout->sizes.size());
  rule.min_bytes = rule.max_bytes = program.storages[saved.storage].bytes;
  rule.placement.place = Place::kRecompute;
  return rule;
}

}  // namespace

std::vector<RecomputeGroup> recompute_groups(const StepProgram& program,
                                             const std::vector<MovableVersion>& versions) {
  using Key = std::tuple<std::int32_t, std::string, std::size_t, Bytes>;
  std::map<Key, RecomputeGroup> found;
  if (!program.recomputations) return {};
  const std::vector<std::size_t> version_of = versions_of_tensors(program, versions);
  for (const Recomputation& recomputation : *program.recomputations) {
    const SavedTensor& saved = program.saved[recomputation.tensor];
    const std::size_t version = version_of[static_cast<std::size_t>(recomputation.tensor)];
    if (version == kNoEvent || versions[version].bytes == 0) continue;
    RecomputeGroup& group =
        found[{saved.op, saved.layout->dtype, saved.layout->sizes.size(), versions[version].bytes}];
    if (group.versions.empty()) group.rule = rule_for(program, saved);
    group.versions.push_back(version);
    group.bytes += versions[version].bytes;
    group.time_ns += time_of(recomputation.use);
  }
  std::vector<RecomputeGroup> groups;
  for (auto& [key, group] : found) groups.push_back(std::move(group));
  std::ranges::stable_sort(groups, {}, [](const RecomputeGroup& group) {
    return static_cast<double>(group.time_ns) / static_cast<double>(group.bytes);
  });
  return groups;
}

std::vector<std::optional<Nanoseconds>> recompute_times(const StepProgram& program,
                                                        const std::vector<MovableVersion>& versions) {
  if (!program.recomputations || program.recomputations->empty()) return {};
  std::vector<std::optional<Nanoseconds>> times(versions.size());
  const std::vector<std::size_t> version_of = versions_of_tensors(program, versions);
  for (const Recomputation& recomputation : *program.recomputations) {
    const std::size_t version = version_of[static_cast<std::size_t>(recomputation.tensor)];
    if (version == kNoEvent) continue;
    const TransformUse& use = recomputation.use;
    times[version] = program.work.empty() ? use.compute_ns : use.work.stream_ns;
  }
  return times;
}

PlanSpace without_recomputed(const PlanSpace& space, const std::vector<RecomputeGroup>& groups) {
  std::vector<char> is_gone(space.versions.size(), 0);
  for (const RecomputeGroup& group : groups)
    for (const std::size_t version : group.versions) is_gone[version] = 1;
  PlanSpace left;
  std::vector<std::size_t> number(space.versions.size(), kNoEvent);
  for (std::size_t v = 0; v < space.versions.size(); ++v) {
    if (is_gone[v] != 0) continue;
    number[v] = left.versions.size();
    left.versions.push_back(space.versions[v]);
  }
  left.least = space.least;
  left.least.gaps.clear();
  for (LeastMemory::Gap gap : space.least.gaps) {
    gap.version = number[gap.version];
    if (gap.version != kNoEvent) left.least.gaps.push_back(gap);
  }
  return left;
}

}  // namespace offprof
