#include "simulator/advisor/advise.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "simulator/advisor/checkpoint_search.h"
#include "simulator/advisor/mixture_search.h"
#include "simulator/advisor/module_family.h"
#include "simulator/advisor/prepared_step.h"
#include "simulator/advisor/recorded_steps.h"
#include "simulator/advisor/step_floor.h"
#include "simulator/advisor/tuned_ways.h"
#include "simulator/tuner/goal_order.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Families of modules that are tried; inner ones win where blocks differ much in what they save.
constexpr std::size_t kMostFamilies = 2;
/// Ways that are run until one of them is confirmed to be within the goal.
constexpr int kMostConfirmations = 3;
/// Configurations whose policies are searched finely in the end: the best ones, as many as have about
/// kPolishedEvents together, and kLeastPolished others that may be faster.
constexpr std::size_t kLeastPolished = 2, kMostPolished = 3, kPolishedEvents = 30'000;

class AdviceSearch {
 public:
  AdviceSearch(StepRecorder& recorder, const AdviceRequest& request,
               const std::function<void(const std::string&)>& progress)
      : recorder_(recorder), request_(request), progress_(progress), steps_(recorder) {}

  Advice run() {
    if (const auto existing = recorder_.existing(); !existing.empty()) {
      search_existing(existing);
    } else {
      search_base();
      if (!nothing_is_best()) search_configurations();
    }
    if (!nothing_is_best()) polish();
    choose();
    add_times();
    advice_.recordings = steps_.size();
    advice_.unrecorded = steps_.unrecorded();
    return std::move(advice_);
  }

 private:
  using Steps = RecordedSteps::Steps;

  // --- Ways ---

  Way way_of(const PreparedStep& step, const std::string& name, const Candidate& candidate) const {
    return offprof::way_of(step, name, candidate, advice_.goal);
  }

  void add_way(const PreparedStep& step, const std::string& name, const Candidate& candidate) {
    advice_.ways.push_back(way_of(step, name, candidate));
  }

  Candidate predict(const PreparedStep& step, const Policy& policy) {
    ++advice_.replayed;
    return {policy, step.steps.predict(policy, step.link)};
  }

  /// Returns the best mixture of a configuration with that name. No search is made twice.
  Candidate mix(const PreparedStep& step, const std::string& name, SearchExtent extent) {
    std::vector<Way>& mixed = extent == SearchExtent::kFine ? finely_mixed_ : mixed_;
    const auto known = std::ranges::find(mixed, step.configuration, &Way::configuration);
    if (known != mixed.end()) return {known->policy, known->predicted};
    MixtureSearchResult found =
        search_mixtures(step.steps, step.link, advice_.goal, extent, request_.threads);
    advice_.replayed += found.replayed;
    mixed.push_back(way_of(step, name, found.best));
    return std::move(found.best);
  }

  /// Adds the configuration alone, and its best mixture. Returns the mixture's rank.
  GoalRank add_configuration(const PreparedStep& step, const std::string& name) {
    add_way(step, name, predict(step, preset_policy("keep")));
    return add_mixture(step, name, SearchExtent::kCoarse);
  }

  GoalRank add_mixture(const PreparedStep& step, const std::string& name, SearchExtent extent) {
    const Candidate best = mix(step, name, extent);
    if (best.policy != preset_policy("keep")) add_way(step, mixture_name(name, best.policy), best);
    return rank_of(best.predicted, advice_.goal);
  }

  // --- Stages ---

  void set_goal(const PreparedStep& step, const Metrics& keep) {
    AdviceGoal& goal = advice_.goal;
    goal.objective = request_.objective;
    goal.most_memory =
        request_.memory_budget_bytes ? request_.memory_budget_bytes : step.steps.device_memory_bytes();
    if (!request_.max_slowdown) return;
    const double most = static_cast<double>(*keep.step_time_ns) * (1 + *request_.max_slowdown);
    goal.most_time = static_cast<Nanoseconds>(std::floor(most));
  }

  void begin(const PreparedStep& plain) {
    const Candidate keep = predict(plain, preset_policy("keep"));
    set_goal(plain, keep.predicted);
    advice_.nothing = way_of(plain, "keep everything", keep);
    advice_.floor = floor_of(*plain.trace);
  }

  bool nothing_is_best() const { return request_.objective == Objective::kTime && advice_.nothing.is_within; }

  /// Searches the program as it is, with and without expandable segments.
  void search_base() {
    progress_("recording the step");
    std::vector<Configuration> configurations(1);
    if (recorder_.configures_allocator()) configurations.push_back({.expands_segments = true});
    const auto steps = steps_.record(configurations);
    if (steps.front() == nullptr)
      throw input_error("the step cannot be recorded: " + steps_.unrecorded().front().reason);
    plain_ = steps.front();
    begin(*plain_);
    base_ = plain_;
    const bool has_expandable = steps.back() != nullptr && steps.back() != plain_;
    if (has_expandable)
      add_way(*steps.back(), "expandable segments", predict(*steps.back(), preset_policy("keep")));
    if (nothing_is_best()) return;
    progress_("simulating policies");
    if (has_expandable) choose_base(steps.back());
    base_rank_ = add_mixture(*base_, "", SearchExtent::kCoarse);
    add_single_ways(*base_);
  }

  /// Chooses between the step as it is and with expandable segments. They waste less between blocks, but a
  /// segment of each kind takes a whole granule, which small steps notice. If neither takes less both with
  /// everything kept and with everything offloaded, the better mixture tells.
  void choose_base(const std::shared_ptr<PreparedStep>& expandable) {
    const auto takes_less = [&](const char* preset) {
      return taken_by(predict(*expandable, preset_policy(preset))) <=
             taken_by(predict(*plain_, preset_policy(preset)));
    };
    const bool keeps_less = takes_less("keep");
    if (keeps_less == takes_less("offload")) {
      if (keeps_less) base_ = expandable;
      return;
    }
    if (add_mixture(*expandable, "", SearchExtent::kCoarse) < add_mixture(*plain_, "", SearchExtent::kCoarse))
      base_ = expandable;
  }

  std::optional<TuneResult> tune_policy(const PreparedStep& step) {
    auto tuned = tune_step(step, advice_.goal, request_.threads);
    if (tuned) advice_.replayed += tuned->policies_tried;
    tuned_.push_back(step.configuration);
    return tuned;
  }

  bool is_tuned(const PreparedStep& step) const {
    return std::ranges::find(tuned_, step.configuration) != tuned_.end();
  }

  void add_single_ways(const PreparedStep& step) {
    const auto tuned = tune_policy(step);
    if (!tuned) return;
    for (const auto& [name, candidate] : single_ways(*tuned, advice_.goal)) add_way(step, name, candidate);
  }

  /// Returns the number of configurations that are worth a fine search: more if the step is short.
  std::size_t most_polished() const {
    const std::size_t events = plain_->trace->program.events.size();
    return std::clamp(kPolishedEvents / std::max<std::size_t>(events, 1), kLeastPolished, kMostPolished);
  }

  /// Returns the configurations whose policies are worth a fine search: the best ones, and those nearest to
  /// the limits of which a way is faster than the best one. Finer policies may bring them within the limits.
  Steps steps_to_polish() const {
    std::vector<const Way*> ranked;
    for (const std::vector<Way>* ways : {&advice_.ways, &mixed_})
      for (const Way& way : *ways) ranked.push_back(&way);
    std::ranges::stable_sort(ranked, {}, [&](const Way* way) { return rank(*way); });
    return steps_.nearest(ranked, most_polished(), kLeastPolished,
                          [&](const PreparedStep& step) { return is_tuned(step); });
  }

  /// Searches the policies of some configurations finely, as mixtures and with the tuner.
  void polish() {
    for (const auto& step : steps_to_polish()) {
      progress_("tuning the policy of a configuration");
      const std::string name = name_of_step(*step);
      add_mixture(*step, name, SearchExtent::kFine);
      if (is_tuned(*step)) continue;
      const auto tuned = tune_policy(*step);
      if (tuned && tuned->chosen) add_way(*step, mixture_name(name, tuned->chosen->policy), *tuned->chosen);
    }
  }

  /// Returns the name of the way that runs the step with nothing else done.
  std::string name_of_step(const PreparedStep& step) const {
    const auto mixed = std::ranges::find(mixed_, step.configuration, &Way::configuration);
    return mixed == mixed_.end() ? "" : mixed->name;
  }

  void search_existing(const std::vector<RecordedStep>& existing) {
    Steps steps;
    for (const RecordedStep& recorded : existing) steps.push_back(steps_.add(recorded));
    plain_ = base_ = steps.front();
    begin(*plain_);
    progress_("simulating policies");
    add_single_ways(*plain_);
    add_mixture(*plain_, "", SearchExtent::kCoarse);
    for (std::size_t i = 1; i < steps.size(); ++i) add_configuration(*steps[i], steps[i]->name);
  }

  Configuration configured() const { return {.expands_segments = base_->configuration.expands_segments}; }

  Configuration checkpointing(const ModuleFamily& family, std::size_t count,
                              Chosen chosen = Chosen::kBest) const {
    Configuration configuration = configured();
    configuration.checkpointed = checkpointed_paths(family, count, chosen);
    return configuration;
  }

  /// A family of modules, and the step with all of them checkpointed.
  struct CheckpointedFamily {
    ModuleFamily modules;
    std::shared_ptr<PreparedStep> all;
    GoalRank rank;  ///< of its best mixture

    std::ptrdiff_t depth() const { return std::ranges::count(modules.pattern, '.'); }
  };

  /// Searches the configurations that need other recordings.
  void search_configurations() {
    std::vector<ModuleFamily> families;
    if (recorder_.configures_checkpointing()) families = module_families(base_->trace->program);
    if (families.size() > kMostFamilies) families.resize(kMostFamilies);
    std::vector<Configuration> configurations;
    for (const ModuleFamily& family : families)
      configurations.push_back(checkpointing(family, family.paths.size()));
    if (recorder_.configures_model()) {
      Configuration host = configured();
      host.parameters = ParameterSettings{"host", {}};
      Configuration slices = host;
      slices.slices = SliceSettings{};
      configurations.insert(configurations.end(), {host, slices});
    }
    if (configurations.empty()) return;
    progress_(fmt::format("recording {} configurations of the model", configurations.size()));
    const auto steps = steps_.record(configurations);
    for (std::size_t i = families.size(); i < steps.size(); ++i)
      if (steps[i])
        add_configuration(*steps[i], i == families.size() ? "parameters on the host" : "layer slices");
    std::vector<CheckpointedFamily> recorded;
    for (std::size_t i = 0; i < families.size(); ++i) {
      const auto& all = steps[i];
      if (all == nullptr) continue;
      const std::string name = checkpoint_name(families[i], families[i].paths.size());
      recorded.push_back({families[i], all, add_configuration(*all, name)});
    }
    if (recorded.empty()) return;
    std::ranges::stable_sort(recorded, {}, &CheckpointedFamily::rank);
    search_counts(recorded.front());
    for (std::size_t i = 1; i < recorded.size(); ++i)
      if (is_promising(recorded[i])) search_counts(recorded[i]);
    const CheckpointedFamily& outermost = *std::ranges::min_element(recorded, {}, &CheckpointedFamily::depth);
    search_first(outermost);
    const bool needs_least = request_.objective == Objective::kMemory || !advice_.ways[best_way()].is_within;
    if (recorder_.configures_model() && needs_least) search_least(outermost);
  }

  /// Returns true if a few counts of the family tell that it may beat all ways so far.
  bool is_promising(const CheckpointedFamily& checkpointed) {
    const ModuleFamily& family = checkpointed.modules;
    const GoalRank best = rank(advice_.ways[best_way()]);
    std::vector<std::size_t> counts = {family.paths.size() / 8, family.paths.size() / 3};
    if (const auto most = most_within_time(checkpointed)) counts.push_back(*most);
    std::ranges::sort(counts);
    counts.erase(std::unique(counts.begin(), counts.end()), counts.end());
    std::erase(counts, std::size_t{0});
    progress_(fmt::format("recording some {} checkpointed", family.pattern));
    return std::ranges::any_of(try_counts(family, counts), [&](const GoalRank& rank) { return rank < best; });
  }

  /// For Objective::kMemory: returns how many modules of the family can probably be checkpointed within the
  /// time; nullopt: there is no limit.
  std::optional<std::size_t> most_within_time(const CheckpointedFamily& checkpointed) {
    if (request_.objective != Objective::kMemory || !advice_.goal.most_time) return std::nullopt;
    const auto time_of = [&](const PreparedStep& step) {
      return *predict(step, preset_policy("keep")).predicted.step_time_ns;
    };
    return checkpointed_within(*advice_.goal.most_time, checkpointed.modules.paths.size(), time_of(*base_),
                               time_of(*checkpointed.all));
  }

  /// Records so many modules checkpointed, for each count. Returns the ranks of the best mixtures.
  std::vector<GoalRank> try_counts(const ModuleFamily& family, const std::vector<std::size_t>& counts) {
    std::vector<Configuration> configurations;
    for (const std::size_t count : counts) configurations.push_back(checkpointing(family, count));
    const Steps steps = steps_.record(configurations);
    std::vector<GoalRank> ranks(counts.size(), kWorstRank);
    for (std::size_t i = 0; i < counts.size(); ++i)
      if (steps[i])
        ranks[i] =
            rank_of(mix(*steps[i], checkpoint_name(family, counts[i]), SearchExtent::kCoarse).predicted,
                    advice_.goal);
    return ranks;
  }

  /// Adds the configuration that takes the least memory, next to layer slices.
  void search_least(const CheckpointedFamily& checkpointed) {
    const std::size_t count = checkpointed.modules.paths.size();
    Configuration configuration = checkpointing(checkpointed.modules, count);
    configuration.parameters = ParameterSettings{"host", {}};
    progress_("recording checkpointed modules with parameters on the host");
    const auto step = steps_.record({configuration}).front();
    if (step)
      add_configuration(*step, checkpoint_name(checkpointed.modules, count) + ", parameters on the host");
  }

  /// Searches the number of evenly spread modules to checkpoint, each with its best mixture.
  void search_counts(const CheckpointedFamily& checkpointed) {
    const ModuleFamily& family = checkpointed.modules;
    std::map<std::size_t, GoalRank> known = {{0, base_rank_}, {family.paths.size(), checkpointed.rank}};
    const auto try_all = [&](const std::vector<std::size_t>& counts) {
      progress_(fmt::format("recording {} of {} {} checkpointed", counts.front(), family.paths.size(),
                            family.pattern));
      return try_counts(family, counts);
    };
    const std::size_t best = best_checkpoint_count(family.paths.size(), known, try_all);
    if (best == 0 || best == family.paths.size()) return;
    if (const auto step = steps_.find(checkpointing(family, best)))
      add_configuration(*step, checkpoint_name(family, best));
    search_shifted(family, best);
  }

  /// Searches the same number of modules at other places: copies may then have more time.
  void search_shifted(const ModuleFamily& family, std::size_t count) {
    const Configuration shifted = checkpointing(family, count, Chosen::kShifted);
    if (!family.is_even() || shifted == checkpointing(family, count)) return;
    const auto step = steps_.record({shifted}).front();
    if (step) mix(*step, checkpoint_name(family, count, Chosen::kShifted), SearchExtent::kCoarse);
  }

  /// Adds the fewest first modules whose checkpointing alone is within the memory. Checkpointing alone
  /// reserves least with the first modules, and memory falls about evenly with their number, so that one or
  /// two recordings beside the estimate suffice. The step with all of them checkpointed is recorded already.
  void search_first(const CheckpointedFamily& checkpointed) {
    const ModuleFamily& family = checkpointed.modules;
    if (!advice_.goal.most_memory || advice_.goal.objective != Objective::kTime) return;
    const auto none = static_cast<double>(taken_by(predict(*base_, preset_policy("keep"))));
    const auto all = static_cast<double>(taken_by(predict(*checkpointed.all, preset_policy("keep"))));
    const auto most = static_cast<double>(*advice_.goal.most_memory);
    if (all > most || none <= all) return;
    const auto modules = static_cast<double>(family.paths.size());
    const auto estimate = static_cast<std::size_t>(std::ceil(modules * (none - most) / (none - all)));
    if (estimate >= family.paths.size()) return;
    progress_(fmt::format("recording the first {} of {} {} checkpointed", estimate, family.paths.size(),
                          family.pattern));
    const std::size_t least = std::max<std::size_t>(estimate, 2) - 1;
    const auto first = [&](std::size_t count) { return checkpointing(family, count, Chosen::kFirst); };
    steps_.record({first(least), first(std::min(least + 1, family.paths.size() - 1))});
    for (std::size_t count = least; count <= std::min(estimate + 1, family.paths.size() - 1); ++count) {
      const auto step = steps_.record({first(count)}).front();
      if (step == nullptr) continue;
      const Way way = way_of(*step, checkpoint_name(family, count, Chosen::kFirst),
                             predict(*step, preset_policy("keep")));
      if (!way.is_within) continue;
      advice_.ways.push_back(way);
      return;
    }
  }

  // --- Choice ---

  /// Sorts the ways, best first, and confirms the best by a run.
  void choose() {
    std::ranges::stable_sort(advice_.ways, {}, [&](const Way& way) { return rank(way); });
    advice_.ways = distinct(std::move(advice_.ways));
    for (int i = 0; i < kMostConfirmations; ++i) {
      const bool nothing = advice_.ways.empty() || !is_worth_more_than_nothing(advice_.ways[best_way()]);
      advice_.does_nothing = nothing;
      if (!nothing) advice_.best = best_way();
      Way& way = nothing ? advice_.nothing : advice_.ways[advice_.best];
      if (way.measured || !way.is_within) return;
      progress_("running the recommended way");
      way.measured = recorder_.confirm(way);
      if (!way.measured) return;
      way.is_within = is_within(*way.measured, advice_.goal);
    }
  }

  /// Adds the modelled times, whose ranges the report compares.
  void add_times() {
    const auto add = [&](Way& way) {
      const auto step = steps_.find(way.configuration);
      if (step) way.time = modelled_time(*step->trace, step->steps, way.policy, step->link);
    };
    add(advice_.nothing);
    for (Way& way : advice_.ways) add(way);
  }

  /// Less memory alone is worth nothing if the step fits and the goal is its time.
  bool is_worth_more_than_nothing(const Way& way) const {
    if (nothing_is_best()) return *way.metrics().step_time_ns < *advice_.nothing.metrics().step_time_ns;
    return rank(way) < rank(advice_.nothing);
  }

  std::size_t best_way() const {
    const auto best = std::ranges::min_element(advice_.ways, {}, [&](const Way& way) { return rank(way); });
    return static_cast<std::size_t>(best - advice_.ways.begin());
  }

  GoalRank rank(const Way& way) const { return rank_of(way.metrics(), advice_.goal); }

  StepRecorder& recorder_;
  const AdviceRequest& request_;
  const std::function<void(const std::string&)>& progress_;
  Advice advice_;
  std::shared_ptr<PreparedStep> plain_, base_;  ///< without and with expandable segments, if they are chosen
  GoalRank base_rank_;                          ///< of the best mixture of `base_`
  RecordedSteps steps_;
  /// The best mixture of each configuration by a coarse and by a fine search, with the configuration's name.
  std::vector<Way> mixed_, finely_mixed_;
  std::vector<Configuration> tuned_;  ///< configurations whose policies were tuned
};

}  // namespace

Advice advise(StepRecorder& recorder, const AdviceRequest& request,
              const std::function<void(const std::string&)>& progress) {
  return AdviceSearch(recorder, request, progress).run();
}

}  // namespace offprof
