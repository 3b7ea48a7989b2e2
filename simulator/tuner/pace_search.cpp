#include "simulator/tuner/pace_search.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "simulator/tuner/device_frontier.h"
#include "simulator/tuner/goal_order.h"
#include "simulator/tuner/plans/pacer.h"
#include "simulator/tuner/settings/parallel.h"

namespace offprof {
namespace {

/// Limit of the events that are followed through the allocator.
constexpr std::size_t kFollowedEvents = 6'000'000;
/// Plans of each family that are followed first, to see how much more than the peak the allocator takes.
constexpr std::size_t kFirstOfFamily = 3;
/// Rounds over the neighbours of the frontier.
constexpr int kRounds = 3;

class PaceSearch {
 public:
  PaceSearch(const TuneInputs& inputs, std::deque<Mixture>& mixtures, std::size_t count, std::size_t most)
      : inputs_(inputs), mixtures_(mixtures), may_replay_(most) {
    for (std::size_t i = 0; i < count; ++i) {
      const PlanSpace& space = mixtures[i].space;
      pacers_.push_back(space.versions.empty()
                            ? std::nullopt
                            : std::optional<Pacer>(std::in_place, inputs.step, inputs.link, space));
    }
    const std::size_t events = std::max<std::size_t>(inputs.step.events().size(), 1);
    may_follow_ = inputs.step.allocator() ? kFollowedEvents / events : 0;
  }

  PaceSearchResult run() {
    std::vector<std::vector<Pace>> grids;
    for (const auto& pacer : pacers_) grids.push_back(pacer ? pacer->grid() : std::vector<Pace>());
    replay(grids);
    if (may_follow_ == 0) return std::move(result_);
    follow(first_of_families());
    follow(promising());
    for (int round = 0; round < kRounds && may_follow_ > 0; ++round) {
      replay(near_frontier());
      follow(promising());
    }
    for (const Found& found : found_)
      if (found.is_followed) result_.followed.push_back(found.candidate);
    return std::move(result_);
  }

 private:
  struct Found {
    std::size_t mixture = 0;
    Pace pace;
    Candidate candidate;
    bool is_followed = false;  ///< its figures include the allocator's memory

    /// Plans of one family recompute the same tensors and move tensors of the same sizes.
    std::pair<std::size_t, std::size_t> family() const { return {mixture, pace.selection}; }
  };

  static Bytes peak_of(const Found& found) { return *found.candidate.predicted.device_peak_bytes; }

  /// Replays the plans that are new; `paces` by mixture. If there are too many, an even selection.
  void replay(const std::vector<std::vector<Pace>>& paces) {
    std::size_t total = 0;
    for (const auto& of_mixture : paces) total += of_mixture.size();
    const std::size_t most = may_replay_ - std::min(may_replay_, result_.replayed);
    const std::size_t each = total > most ? (total + most) / std::max<std::size_t>(most, 1) : 1;
    if (most == 0) return;
    for (std::size_t m = 0; m < paces.size(); ++m) {
      std::vector<Found> tried;
      std::vector<PlanSearch::Plan> plans;
      for (std::size_t i = 0; i < paces[m].size(); i += each) {
        PlanSearch::Plan plan = pacers_[m]->plan(paces[m][i]);
        if (!known_.emplace(m, plan.moved, plan.setting.stash, plan.setting.window).second) continue;
        tried.push_back({m, paces[m][i], {}});
        plans.push_back(std::move(plan));
      }
      if (plans.empty()) continue;
      Mixture& mixture = mixtures_[m];
      PlanSearch search(
          inputs_.step, inputs_.link, mixture.space.versions, mixture.base, mixture.peaks,
          {.replays = plans.size(), .threads = inputs_.goal.threads, .shares = inputs_.goal.shares_replays});
      std::vector<Candidate> candidates = search.try_plans(plans);
      for (std::size_t i = 0; i < candidates.size(); ++i) tried[i].candidate = std::move(candidates[i]);
      result_.replayed += search.replays();
      result_.effort += search.effort();
      keep_best(std::move(tried));
    }
  }

  /// Keeps the Pareto frontier of each family, over peak and time.
  void keep_best(std::vector<Found> tried) {
    if (may_follow_ == 0) return;
    std::ranges::stable_sort(tried, {}, [](const Found& found) {
      return std::tuple(found.pace.selection, peak_of(found), step_time_of(found.candidate));
    });
    std::optional<std::size_t> selection;
    Nanoseconds fastest = 0;
    for (Found& found : tried) {
      const Nanoseconds time = step_time_of(found.candidate);
      if (selection == found.pace.selection && time >= fastest) continue;
      selection = found.pace.selection;
      fastest = time;
      found_.push_back(std::move(found));
    }
  }

  std::vector<std::size_t> first_of_families() const {
    std::map<std::pair<std::size_t, std::size_t>, std::vector<std::size_t>> families;
    for (std::size_t i = 0; i < found_.size(); ++i) families[found_[i].family()].push_back(i);
    std::vector<std::size_t> first;
    for (const auto& [family, members] : families)
      for (std::size_t i = 0; i < kFirstOfFamily; ++i)
        first.push_back(members[i * (members.size() - 1) / (kFirstOfFamily - 1)]);
    std::ranges::sort(first);
    first.erase(std::unique(first.begin(), first.end()), first.end());
    return first;
  }

  /// Estimates the memory taken: beyond the peak as much as the nearest followed plan of the family.
  std::optional<Bytes> estimate(const Found& found) const {
    std::optional<Bytes> taken;
    Bytes nearest = 0;
    for (const Found& other : found_) {
      if (!other.is_followed || other.family() != found.family()) continue;
      const Bytes distance = std::abs(peak_of(other) - peak_of(found));
      if (taken && distance >= nearest) continue;
      nearest = distance;
      taken = peak_of(found) + taken_by(other.candidate) - peak_of(other);
    }
    return taken;
  }

  /// Returns the plans that are probably not dominated by a followed one.
  std::vector<std::size_t> promising() const {
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < found_.size(); ++i) {
      if (found_[i].is_followed) continue;
      const std::optional<Bytes> taken = estimate(found_[i]);
      const Nanoseconds time = step_time_of(found_[i].candidate);
      const auto dominates = [&](const Found& other) {
        return other.is_followed && taken && taken_by(other.candidate) <= *taken &&
               step_time_of(other.candidate) <= time;
      };
      if (std::ranges::none_of(found_, dominates)) chosen.push_back(i);
    }
    return chosen;
  }

  /// Follows the plans through the allocator. If they are too many, an even selection.
  void follow(const std::vector<std::size_t>& wanted) {
    const std::size_t each =
        wanted.size() > may_follow_ ? wanted.size() / std::max<std::size_t>(may_follow_, 1) + 1 : 1;
    std::vector<std::size_t> chosen;
    for (std::size_t i = 0; i < wanted.size(); i += each) chosen.push_back(wanted[i]);
    for_each_index(chosen.size(), inputs_.threads(), [&](std::size_t i) {
      Candidate& candidate = found_[chosen[i]].candidate;
      candidate.predicted = inputs_.steps.with_cache(candidate.policy, candidate.predicted);
    });
    for (const std::size_t i : chosen) found_[i].is_followed = true;
    may_follow_ -= std::min(may_follow_, chosen.size());
  }

  /// Returns paces near those of the frontier over memory taken and time, by mixture.
  std::vector<std::vector<Pace>> near_frontier() const {
    std::vector<const Found*> followed;
    for (const Found& found : found_)
      if (found.is_followed) followed.push_back(&found);
    std::ranges::stable_sort(followed, {}, [](const Found* found) {
      return std::pair(taken_by(found->candidate), step_time_of(found->candidate));
    });
    std::vector<std::vector<Pace>> near(pacers_.size());
    std::optional<Nanoseconds> fastest;
    for (const Found* found : followed) {
      const Nanoseconds time = step_time_of(found->candidate);
      if (fastest && time >= *fastest) continue;
      fastest = time;
      for (const Pace& pace : pacers_[found->mixture]->neighbours(found->pace))
        near[found->mixture].push_back(pace);
    }
    return near;
  }

  const TuneInputs& inputs_;
  std::deque<Mixture>& mixtures_;
  std::deque<std::optional<Pacer>> pacers_;  ///< of the searched mixtures; nullopt: nothing may move
  std::size_t may_replay_, may_follow_ = 0;
  std::set<std::tuple<std::size_t, PlanSearch::Choice, std::int64_t, Bytes>> known_;
  std::vector<Found> found_;
  PaceSearchResult result_;
};

}  // namespace

PaceSearchResult search_paces(const TuneInputs& inputs, std::deque<Mixture>& mixtures, std::size_t count,
                              std::size_t most) {
  return PaceSearch(inputs, mixtures, count, most).run();
}

}  // namespace offprof
