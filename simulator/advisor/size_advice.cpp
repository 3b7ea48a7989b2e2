#include "simulator/advisor/size_advice.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <map>
#include <utility>

#include "simulator/advisor/largest_size.h"
#include "simulator/advisor/mixture.h"
#include "simulator/advisor/mixture_search.h"
#include "simulator/advisor/module_family.h"
#include "simulator/advisor/prepared_step.h"
#include "simulator/tuner/settings/parallel.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Treatment of a configuration.
enum class Handling { kNothing, kTrl, kMixture };

class SizeSearch {
 public:
  SizeSearch(SizedStepRecorder& recorder, const AdviceRequest& request,
             const std::function<void(const std::string&)>& progress)
      : recorder_(recorder), request_(request), progress_(progress) {}

  SizeAdvice run() {
    begin();
    search_base();
    search_configurations();
    std::ranges::stable_sort(advice_.ways, {}, [](const SizedWay& way) {
      return std::pair(-way.size, *way.way.predicted.step_time_ns);
    });
    confirm();
    return std::move(advice_);
  }

 private:
  using Steps = std::map<std::int64_t, std::shared_ptr<PreparedStep>>;

  void begin() {
    progress_("recording the step");
    const auto plain = taken_in(recorder_.record({Configuration{}}).front());
    if (!plain) throw input_error("the step cannot be recorded: " + advice_.unrecorded.front().reason);
    plain_ = plain;
    advice_.present = guess_ = recorder_.present_size();
    advice_.goal.objective = Objective::kTime;
    advice_.goal.most_memory =
        request_.memory_budget_bytes ? request_.memory_budget_bytes : plain->steps.device_memory_bytes();
    if (!advice_.goal.most_memory)
      throw input_error("the device's memory is not known, so no size is the largest one that fits",
                        "Give a limit: --memory-budget 80GiB");
    const Candidate keep = predict(*plain, preset_policy("keep"));
    advice_.nothing = way_of(*plain, "keep everything", keep, advice_.goal);
  }

  void search_base() {
    Steps plain = {{advice_.present, plain_}};
    search({}, "keep everything", Handling::kNothing, plain);
    Configuration base;
    Steps steps = plain;
    if (recorder_.configures_allocator()) {
      base.expands_segments = true;
      steps.clear();
      search(base, "expandable segments", Handling::kNothing, steps);
    }
    base_ = base;
    search(base, "TRL's and torchtune's defaults", Handling::kTrl, steps);
    search(base, "", Handling::kMixture, steps);
  }

  void search_configurations() {
    Configuration host = base_, slices = base_, checkpointed = base_;
    host.parameters = slices.parameters = ParameterSettings{"host", {}};
    slices.slices = SliceSettings{};
    if (recorder_.configures_model()) {
      search_configuration(host, "parameters on the host");
      search_configuration(slices, "layer slices");
    }
    if (!recorder_.configures_checkpointing()) return;
    const std::vector<ModuleFamily> families = module_families(plain_->trace->program);
    if (families.empty()) return;
    const ModuleFamily& family = families.front();
    checkpointed.checkpointed = checkpointed_paths(family, family.paths.size());
    const std::string name = checkpoint_name(family, family.paths.size());
    search_configuration(checkpointed, name);
    if (!recorder_.configures_model()) return;
    host.checkpointed = checkpointed.checkpointed;
    search_configuration(host, name + ", parameters on the host");
  }

  void search_configuration(const Configuration& configuration, const std::string& name) {
    Steps steps;
    search(configuration, name, Handling::kNothing, steps);
    search(configuration, name, Handling::kMixture, steps);
  }

  /// Adds the way with the largest size of a configuration. `steps` has its recordings by size, and gets
  /// more.
  void search(const Configuration& configuration, const std::string& name, Handling handling, Steps& steps) {
    const auto taken = [&](const std::vector<std::int64_t>& sizes) {
      record(configuration, sizes, steps);
      std::vector<std::optional<Bytes>> bytes;
      for (const std::int64_t size : sizes) {
        const auto& step = steps.at(size);
        bytes.push_back(step ? std::optional(least_bytes(*step, size, handling)) : std::nullopt);
      }
      return bytes;
    };
    progress_(fmt::format("{}: {}", kSearchingSize, name.empty() ? "recompute and offload" : name));
    const std::int64_t size =
        largest_size(guess_, *advice_.goal.most_memory, recorder_.runs_at_once(), taken);
    if (size > 0) guess_ = size;
    const std::int64_t shown = std::max<std::int64_t>(size, 1);
    record(configuration, {shown}, steps);
    const auto step = steps.at(shown);
    if (step == nullptr) return;
    const Candidate best = best_at(*step, shown, handling);
    SizedWay found{way_of(*step, handling == Handling::kMixture ? mixture_name(name, best.policy) : name,
                          best, limits(shown)),
                   is_within(best.predicted, limits(shown)) ? size : 0, shown};
    const auto next = steps.find(size + 1);
    found.is_limited_by_recording = next != steps.end() && next->second == nullptr;
    if (std::ranges::none_of(advice_.ways, [&](const SizedWay& way) {
          return way.way.configuration == found.way.configuration && way.way.policy == found.way.policy;
        }))
      advice_.ways.push_back(std::move(found));
  }

  /// Records the steps of those sizes that `steps` lacks. It gets nullptr for one that cannot be recorded.
  void record(Configuration configuration, const std::vector<std::int64_t>& sizes, Steps& steps) {
    std::vector<Configuration> missing;
    for (const std::int64_t size : sizes) {
      configuration.size = size;
      if (!steps.contains(size)) missing.push_back(configuration);
    }
    if (missing.empty()) return;
    const std::vector<RecordedStep> recorded = recorder_.record(missing);
    for (std::size_t i = 0; i < missing.size(); ++i) steps[*missing[i].size] = taken_in(recorded[i]);
  }

  /// Returns the recorded step; nullptr: it could not be recorded.
  std::shared_ptr<PreparedStep> taken_in(const RecordedStep& recorded) {
    if (recorded.trace == nullptr) {
      advice_.unrecorded.push_back({recorded.configuration, recorded.failure});
      return nullptr;
    }
    ++advice_.recordings;
    return std::make_shared<PreparedStep>(recorded);
  }

  Candidate predict(const PreparedStep& step, const Policy& policy) {
    ++advice_.replayed;
    return {policy, step.steps.predict(policy, step.link)};
  }

  /// Returns the limits of a step of this size.
  AdviceGoal limits(std::int64_t size) const {
    AdviceGoal goal = advice_.goal;
    if (!request_.max_slowdown) return goal;
    const double per_size =
        static_cast<double>(*advice_.nothing.predicted.step_time_ns) / static_cast<double>(advice_.present);
    goal.most_time = static_cast<Nanoseconds>(
        std::floor((1 + *request_.max_slowdown) * per_size * static_cast<double>(size)));
    return goal;
  }

  /// Returns the least bytes of the step within the limit of time, if there is one. If nothing is within it,
  /// the limit does not count: a step of few samples may take too long for each of them even with nothing
  /// done, since it does not fill the GPU, and a larger one not.
  Bytes least_bytes(const PreparedStep& step, std::int64_t size, Handling handling) {
    Candidate least = least_memory(step, size, handling);
    AdviceGoal time_limit = limits(size);
    time_limit.most_memory.reset();
    if (handling == Handling::kMixture && !is_within(least.predicted, time_limit))
      least = least_memory_of_sets(step);
    return device_bytes_taken(least.predicted);
  }

  /// Returns the policy with the least memory, within the limit of time if there is one.
  Candidate least_memory(const PreparedStep& step, std::int64_t size, Handling handling) {
    if (handling == Handling::kNothing) return predict(step, preset_policy("keep"));
    if (handling == Handling::kTrl) return predict(step, preset_policy("trl"));
    AdviceGoal goal = limits(size);
    goal.objective = Objective::kMemory;
    if (goal.most_time) {
      goal.most_memory.reset();
      return mix(step, goal);
    }
    return least_memory_of_sets(step);
  }

  /// Without a limit of time the least memory is that of everything offloaded or recomputed, with copies back
  /// on demand.
  Candidate least_memory_of_sets(const PreparedStep& step) {
    const Policy keep = preset_policy("keep");
    const MixtureMaker maker(step.steps.program(keep), step.steps.step(keep));
    std::vector<Candidate> candidates(maker.rule_sets() + 1);
    candidates.back().policy = keep;
    for (std::size_t set = 0; set < maker.rule_sets(); ++set)
      candidates[set].policy = maker.policy_of({.rules = set, .share = kShareSteps});
    for_each_index(candidates.size(), request_.threads, [&](std::size_t i) {
      candidates[i].predicted = step.steps.predict(candidates[i].policy, step.link);
    });
    advice_.replayed += candidates.size();
    return *std::ranges::min_element(
        candidates, {}, [](const Candidate& candidate) { return device_bytes_taken(candidate.predicted); });
  }

  Candidate mix(const PreparedStep& step, const AdviceGoal& goal) {
    const MixtureSearchResult found =
        search_mixtures(step.steps, step.link, goal, SearchExtent::kCoarse, request_.threads);
    advice_.replayed += found.replayed;
    return found.best;
  }

  /// Returns the fastest policy within the limits, or the nearest one.
  Candidate best_at(const PreparedStep& step, std::int64_t size, Handling handling) {
    Candidate least = least_memory(step, size, handling);
    if (handling != Handling::kMixture) return least;
    const AdviceGoal goal = limits(size);
    Candidate mixed = mix(step, goal);
    return rank_of(mixed.predicted, goal) < rank_of(least.predicted, goal) ? mixed : least;
  }

  void confirm() {
    if (advice_.ways.empty() || advice_.ways.front().size == 0) return;
    progress_("running the recommended way");
    Way& way = advice_.ways.front().way;
    way.measured = recorder_.confirm(way);
  }

  SizedStepRecorder& recorder_;
  const AdviceRequest& request_;
  const std::function<void(const std::string&)>& progress_;
  SizeAdvice advice_;
  std::shared_ptr<PreparedStep> plain_;  ///< at the program's own size
  Configuration base_;                   ///< with expandable segments, if they can be chosen
  std::int64_t guess_ = 1;               ///< the last largest size that was found; first the program's own
};

}  // namespace

SizeAdvice advise_size(SizedStepRecorder& recorder, const AdviceRequest& request,
                       const std::function<void(const std::string&)>& progress) {
  return SizeSearch(recorder, request, progress).run();
}

}  // namespace offprof
