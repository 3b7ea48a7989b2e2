#include "simulator/advisor/mixture_search.h"

#include <algorithm>
#include <map>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "simulator/advisor/mixture.h"
#include "simulator/tuner/settings/parallel.h"

namespace offprof {
namespace {

/// Rounds over all settings; later rounds rarely improve anything.
constexpr int kMostRounds = 3;
constexpr Mixture kStart{.rules = 0, .share = kShareSteps, .stash = 8, .prefetch = 8, .spares_latest = false};
/// Stashes and windows to try. A window of 8 is four of the largest storages.
constexpr std::int64_t kStashes[] = {0, 2, 4, 8, 12, 16, 24};
constexpr std::int64_t kWindows[] = {2, 4, 8, 12, 16, 32};
/// Parts of the range of shares that are tried if offloading everything is not within the limit.
constexpr std::int64_t kPartsBetween = 8;

class MixtureSearch {
 public:
  MixtureSearch(const TraceSteps& steps, const Link& link, const AdviceGoal& goal, unsigned threads)
      : steps_(steps),
        link_(link),
        goal_(goal),
        threads_(threads),
        maker_(steps.program(preset_policy("keep")), steps.step(preset_policy("keep"))) {
    best_ = {{.rules = 0, .share = 0}, evaluate({.rules = 0, .share = 0})};
  }

  MixtureSearchResult run(SearchExtent extent) {
    if (maker_.movable() > 0) {
      consider(starts());
      for (int round = 0; round < kMostRounds && improve(); ++round) {
      }
      if (extent == SearchExtent::kFine)
        for (int round = 0; round < kMostRounds && refine(); ++round) {
        }
    }
    return {{maker_.policy_of(best_.mixture), best_.metrics}, known_.size()};
  }

 private:
  struct Found {
    Mixture mixture;
    Metrics metrics;
  };

  /// Returns each set of rules with both orders of offloading. The best of them depends on how fast copies
  /// are, and improving one setting at a time does not lead from one to the other.
  std::vector<Mixture> starts() const {
    std::vector<Mixture> starts;
    for (std::size_t set = 0; set < maker_.rule_sets(); ++set)
      for (const bool spares_latest : {false, true}) {
        Mixture start = kStart;
        start.rules = set;
        start.spares_latest = spares_latest;
        starts.push_back(start);
      }
    return starts;
  }

  Metrics evaluate(const Mixture& mixture) { return *find(mixture, /*most_taken=*/std::nullopt); }

  /// Returns nullopt if the mixture takes more memory than the goal's limit.
  std::optional<Metrics> evaluate_within(const Mixture& mixture) {
    const auto found = find(mixture, goal_.most_memory);
    return found && takes_too_much(*found) ? std::nullopt : found;
  }

  bool takes_too_much(const Metrics& metrics) const {
    return goal_.most_memory && device_bytes_taken(metrics) > *goal_.most_memory;
  }

  /// Predicts the mixture, unless `known_` has it. May return nullopt if it takes more than `most_taken`.
  std::optional<Metrics> find(Mixture mixture, const std::optional<Bytes>& most_taken) {
    if (mixture.share == 0) mixture = {.rules = mixture.rules};  // nothing moves
    {
      const std::scoped_lock lock(mutex_);
      const auto known = known_.find(mixture);
      if (known != known_.end() && (known->second || most_taken)) return known->second;
    }
    const Policy policy = maker_.policy_of(mixture);
    std::optional<Metrics> metrics =
        most_taken ? steps_.predict_within(*most_taken, policy, link_) : steps_.predict(policy, link_);
    const std::scoped_lock lock(mutex_);
    known_.insert_or_assign(mixture, metrics);
    return metrics;
  }

  bool is_in_time(const Metrics& metrics) const {
    return !goal_.most_time || *metrics.step_time_ns <= *goal_.most_time;
  }

  /// Returns the mixture with the best share, by bisection between no and all bytes.
  Found with_share(const Mixture& mixture) {
    return goal_.objective == Objective::kMemory ? with_most_share(mixture) : with_least_share(mixture);
  }

  /// For Objective::kMemory: the largest share within the time.
  Found with_most_share(const Mixture& mixture) {
    Found low = found_at(mixture, 0), high = found_at(mixture, kShareSteps);
    if (!is_in_time(low.metrics)) return low;
    if (is_in_time(high.metrics)) return best_between(low, high);
    while (high.mixture.share - low.mixture.share > 1) {
      Found middle = found_at(mixture, (low.mixture.share + high.mixture.share) / 2);
      (is_in_time(middle.metrics) ? low : high) = std::move(middle);
    }
    return low;
  }

  /// For Objective::kTime: the least share within the memory.
  Found with_least_share(const Mixture& mixture) {
    if (const auto low = within_at(mixture, 0)) return *low;
    auto high = within_at(mixture, kShareSteps);
    if (!high) {
      high = best_between(found_at(mixture, 0), found_at(mixture, kShareSteps));
      if (takes_too_much(high->metrics)) return *high;
    }
    std::int64_t too_little = 0;
    while (high->mixture.share - too_little > 1) {
      const std::int64_t middle = (too_little + high->mixture.share) / 2;
      if (auto found = within_at(mixture, middle))
        high = std::move(found);
      else
        too_little = middle;
    }
    return *high;
  }

  Found found_at(Mixture mixture, std::int64_t share) {
    mixture.share = share;
    return {mixture, evaluate(mixture)};
  }

  std::optional<Found> within_at(Mixture mixture, std::int64_t share) {
    mixture.share = share;
    if (auto metrics = evaluate_within(mixture)) return Found{mixture, *std::move(metrics)};
    return std::nullopt;
  }

  /// Returns the best of both and of some shares between them: where offloading everything needs most of the
  /// blocks for copies, a part of it takes less memory than all.
  Found best_between(const Found& low, const Found& high) {
    Found best = better_of(low, high);
    for (std::int64_t part = 1; part < kPartsBetween; ++part)
      best = better_of(best, found_at(low.mixture, part * kShareSteps / kPartsBetween));
    return best;
  }

  Found better_of(const Found& a, const Found& b) const {
    return rank_of(b.metrics, goal_) < rank_of(a.metrics, goal_) ? b : a;
  }

  /// Searches the share of each mixture, and notes the best. Returns true if it is better than before.
  bool consider(const std::vector<Mixture>& mixtures) {
    std::vector<Found> found(mixtures.size());
    for_each_index(mixtures.size(), threads_, [&](std::size_t i) { found[i] = with_share(mixtures[i]); });
    return consider_all(found);
  }

  bool consider_all(const std::vector<Found>& found) {
    bool improved = false;
    for (const Found& one : found) {
      if (!has_current_ || rank_of(one.metrics, goal_) < rank_of(current_.metrics, goal_)) {
        current_ = one;
        improved = has_current_ = true;
      }
    }
    if (rank_of(current_.metrics, goal_) < rank_of(best_.metrics, goal_)) best_ = current_;
    return improved;
  }

  template <typename Values, typename Set>
  bool vary(const Values& values, Set set) {
    std::vector<Mixture> mixtures;
    for (const auto value : values) {
      Mixture mixture = current_.mixture;
      set(mixture, value);
      if (mixture != current_.mixture) mixtures.push_back(mixture);
    }
    return consider(mixtures);
  }

  bool improve() {
    std::vector<std::size_t> sets(maker_.rule_sets());
    for (std::size_t i = 0; i < sets.size(); ++i) sets[i] = i;
    bool improved = vary(sets, [](Mixture& mixture, std::size_t set) { mixture.rules = set; });
    improved |= vary(kStashes, [](Mixture& mixture, std::int64_t stash) { mixture.stash = stash; });
    improved |= vary(kWindows, [](Mixture& mixture, std::int64_t window) { mixture.prefetch = window; });
    improved |=
        vary(std::vector{false, true}, [](Mixture& mixture, bool spares) { mixture.spares_latest = spares; });
    return improved;
  }

  /// Tries the neighbours of the best stash and window.
  bool refine() {
    const Mixture centre = current_.mixture;
    std::vector<std::int64_t> stashes, windows;
    for (const std::int64_t by : {-3, -2, -1, 1, 2, 3}) {
      stashes.push_back(std::max<std::int64_t>(centre.stash + by, 0));
      windows.push_back(std::max<std::int64_t>(centre.prefetch + by, 0));
    }
    bool improved = vary(stashes, [](Mixture& mixture, std::int64_t stash) { mixture.stash = stash; });
    improved |= vary(windows, [](Mixture& mixture, std::int64_t window) { mixture.prefetch = window; });
    return improved | improve();
  }

  const TraceSteps& steps_;
  const Link& link_;
  const AdviceGoal& goal_;
  unsigned threads_;
  MixtureMaker maker_;
  std::mutex mutex_;
  /// nullopt: takes more memory than the goal's limit, but how much was not needed.
  std::map<Mixture, std::optional<Metrics>> known_;
  Found current_;  ///< where the search stands; may be worse than `best_`
  bool has_current_ = false;
  Found best_;
};

}  // namespace

MixtureSearchResult search_mixtures(const TraceSteps& steps, const Link& link, const AdviceGoal& goal,
                                    SearchExtent extent, unsigned threads) {
  return MixtureSearch(steps, link, goal, threads).run(extent);
}

}  // namespace offprof
