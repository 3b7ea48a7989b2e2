#include "simulator/tuner/placement_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "simulator/tuner/settings/parallel.h"

namespace offprof {
namespace {

/// The tensors that one rule selects.
struct Group {
  PolicyRule rule;
  std::int64_t tensors = 0;
  Bytes bytes = 0;
  std::vector<Placement> choices;  ///< the first one keeps the tensors on the device
};

Bytes storage_bytes(const StepProgram& program, const SavedTensor& saved) {
  return saved.storage < 0 ? 0 : program.storages[saved.storage].bytes;
}

/// Returns true if the transform was measured over storages of that size.
bool packs(const TransformProfile& profile, const std::string& dtype, std::int64_t elements) {
  return std::ranges::any_of(profile.costs, [&](const TransformCost& cost) {
    return cost.dtype == dtype && cost.elements == elements;
  });
}

void add_each(std::vector<Placement>& placements, const std::string& transform,
              std::span<const Place> places) {
  for (const Place place : places) placements.push_back({transform, place});
}

std::vector<Placement> choices_for(std::span<const TransformProfile> profiles, std::span<const Place> places,
                                   const std::string& dtype, std::int64_t elements) {
  std::vector<Placement> choices;
  add_each(choices, "", places);
  for (const TransformProfile& profile : profiles)
    if (packs(profile, dtype, elements)) add_each(choices, profile.name, places);
  return choices;
}

using StorageContent = std::pair<std::int32_t, std::uint32_t>;

/// Returns the contents that can be recomputed.
std::set<StorageContent> recomputable_contents(const StepProgram& program) {
  std::set<StorageContent> contents;
  for (const Recomputation& recomputation : program.recomputations.value_or(std::vector<Recomputation>()))
    contents.insert(
        {program.saved[recomputation.tensor].storage, program.saved[recomputation.tensor].version});
  return contents;
}

constexpr auto kRecomputes = [](const Group& group) {
  return std::ranges::find(group.choices, Placement{"", Place::kRecompute}) != group.choices.end();
};

/// Returns the groups, those with most bytes first.
std::vector<Group> groups_of(const StepProgram& program, std::span<const TransformProfile> profiles,
                             std::span<const Place> places) {
  std::map<std::tuple<std::int32_t, std::string, std::int64_t, Bytes>, Group> groups;
  const std::set<StorageContent> recomputable = recomputable_contents(program);
  for (const SavedTensor& saved : program.saved) {
    const Bytes storage = storage_bytes(program, saved);
    const std::int64_t elements = elements_of(*saved.layout);
    if (saved.movability != Movability::kMovable || elements == 0) continue;
    const auto rank = static_cast<std::int64_t>(saved.layout->sizes.size());
    Group& group = groups[{saved.op, saved.layout->dtype, rank, storage}];
    if (group.tensors++ == 0) {
      group.rule.op = program.names[saved.op];
      group.rule.dtype = saved.layout->dtype;
      group.rule.rank = rank;
      group.rule.min_bytes = group.rule.max_bytes = storage;
      // No transform takes tensors of less than a byte per element. A trace may come from anyone.
      const Bytes element_bytes = saved.bytes / elements;
      group.choices =
          choices_for(profiles, places, saved.layout->dtype, element_bytes > 0 ? storage / element_bytes : 0);
    }
    group.bytes += saved.bytes;
    if (recomputable.contains({saved.storage, saved.version}) && !kRecomputes(group))
      group.choices.push_back({"", Place::kRecompute});
  }
  std::vector<Group> sorted;
  for (auto& [key, group] : groups) sorted.push_back(std::move(group));
  std::ranges::stable_sort(sorted, std::ranges::greater(), &Group::bytes);
  return sorted;
}

/// By group, the index of its choice.
using Assignment = std::vector<std::size_t>;

class Search {
 public:
  Search(const StepProgram& program, std::span<const TransformProfile> profiles,
         std::span<const Place> places, Policy base, const PlacementJudge& judge, std::size_t most_replays,
         unsigned threads)
      : groups_(groups_of(program, profiles, places)),
        profiles_(profiles),
        places_(places),
        settings_(std::move(base)),
        judge_(judge),
        most_replays_(most_replays),
        threads_(threads) {
    settings_.rules.clear();
    settings_.tensors.reset();
    settings_.threshold_bytes.reset();
  }

  PlacementSearchResult run() {
    result_.groups = groups_.size();
    try_alone();
    while (sweep_groups() || try_settings())
      if (result_.replayed >= most_replays_) break;
    return std::move(result_);
  }

 private:
  Policy policy_of(const Assignment& assignment, const Policy& settings) const {
    Policy policy = settings;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (assignment[i] == 0) continue;
      policy.rules.push_back(groups_[i].rule);
      policy.rules.back().placement = groups_[i].choices[assignment[i]];
    }
    return policy;
  }

  /// Returns the candidates in the order of the policies.
  std::vector<Candidate> predict(const std::vector<Policy>& policies) {
    std::vector<Candidate> candidates(policies.size());
    for_each_index(policies.size(), threads_,
                   [&](std::size_t i) { candidates[i] = judge_.predict(policies[i]); });
    result_.replayed += policies.size();
    return candidates;
  }

  void try_alone() {
    std::vector<Placement> placements;
    add_each(placements, "", places_);
    for (const TransformProfile& profile : profiles_) add_each(placements, profile.name, places_);
    if (std::ranges::any_of(groups_, kRecomputes)) placements.push_back({"", Place::kRecompute});
    std::vector<Assignment> assignments;
    std::vector<Policy> policies;
    for (const Placement& placement : placements) {
      assignments.push_back(everywhere(placement));
      policies.push_back(policy_of(assignments.back(), settings_));
    }
    const std::vector<Candidate> candidates = predict(policies);
    for (std::size_t i = 0; i < placements.size(); ++i) {
      result_.alone.push_back(cost_of(placements[i], assignments[i], candidates[i]));
      take_if_better(assignments[i], settings_, candidates[i]);
    }
  }

  Assignment everywhere(const Placement& placement) const {
    Assignment assignment;
    for (const Group& group : groups_) {
      const auto found = std::ranges::find(group.choices, placement);
      const bool is_there = found != group.choices.end();
      assignment.push_back(is_there ? static_cast<std::size_t>(found - group.choices.begin()) : 0);
    }
    return assignment;
  }

  PlacementCost cost_of(const Placement& placement, const Assignment& assignment,
                        const Candidate& candidate) const {
    PlacementCost cost{placement, true, 0, 0, candidate};
    const auto profile = std::ranges::find(profiles_, placement.transform, &TransformProfile::name);
    if (profile != profiles_.end()) cost.is_lossless = profile->is_lossless;
    for (std::size_t i = 0; i < groups_.size(); ++i) {
      if (groups_[i].choices[assignment[i]] != placement) continue;
      cost.tensors += groups_[i].tensors;
      cost.bytes += groups_[i].bytes;
    }
    return cost;
  }

  bool take_if_better(const Assignment& assignment, const Policy& settings, const Candidate& candidate) {
    if (best_ && !judge_.is_better(candidate, result_.best)) return false;
    best_ = assignment;
    settings_ = settings;
    result_.best = candidate;
    return true;
  }

  /// Returns true if anything improved.
  bool sweep_groups() {
    bool is_better = false;
    for (std::size_t group = 0; group < groups_.size() && result_.replayed < most_replays_; ++group) {
      std::vector<Assignment> assignments;
      std::vector<Policy> policies;
      for (std::size_t choice = 0; choice < groups_[group].choices.size(); ++choice) {
        if (choice == (*best_)[group]) continue;
        assignments.push_back(*best_);
        assignments.back()[group] = choice;
        policies.push_back(policy_of(assignments.back(), settings_));
      }
      const std::vector<Candidate> candidates = predict(policies);
      for (std::size_t i = 0; i < candidates.size(); ++i)
        is_better |= take_if_better(assignments[i], settings_, candidates[i]);
    }
    return is_better;
  }

  /// Tries other stashes and windows for the current assignment. Returns true if anything improved.
  bool try_settings() {
    std::vector<Policy> tried;
    for (const std::int64_t stash : {0, 1, 2, 4, 8})
      for (const Bytes times_largest : {0, 1, 2, 4}) {
        Policy& settings = tried.emplace_back(settings_);
        settings.stash_bytes.reset();
        settings.stash_count = stash;
        settings.prefetch_bytes = times_largest * largest();
      }
    std::vector<Policy> policies;
    for (const Policy& settings : tried) policies.push_back(policy_of(*best_, settings));
    const std::vector<Candidate> candidates = predict(policies);
    bool is_better = false;
    const Assignment assignment = *best_;
    for (std::size_t i = 0; i < candidates.size(); ++i)
      is_better |= take_if_better(assignment, tried[i], candidates[i]);
    return is_better;
  }

  /// Returns the size of the largest storage that may move.
  Bytes largest() const {
    Bytes most = 0;
    for (const Group& group : groups_) most = std::max(most, *group.rule.max_bytes);
    return most;
  }

  std::vector<Group> groups_;
  std::span<const TransformProfile> profiles_;
  std::span<const Place> places_;
  Policy settings_;
  const PlacementJudge& judge_;
  std::size_t most_replays_;
  unsigned threads_;
  std::optional<Assignment> best_;
  PlacementSearchResult result_;
};

}  // namespace

PlacementSearchResult search_placements(const StepProgram& program,
                                        std::span<const TransformProfile> profiles,
                                        std::span<const Place> places, const Policy& base,
                                        const PlacementJudge& judge, std::size_t most_replays,
                                        unsigned threads) {
  return Search(program, profiles, places, base, judge, most_replays, threads).run();
}

}  // namespace offprof
