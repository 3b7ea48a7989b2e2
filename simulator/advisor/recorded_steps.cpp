#include "simulator/advisor/recorded_steps.h"

#include <algorithm>

namespace offprof {

RecordedSteps::Steps RecordedSteps::record(const std::vector<Configuration>& configurations) {
  std::vector<Configuration> missing;
  for (const Configuration& configuration : configurations)
    if (find(configuration) == nullptr && !has_failed(configuration) &&
        std::ranges::find(missing, configuration) == missing.end())
      missing.push_back(configuration);
  if (!missing.empty())
    for (const RecordedStep& recorded : recorder_.record(missing)) add(recorded);
  Steps steps;
  for (const Configuration& configuration : configurations) steps.push_back(find(configuration));
  return steps;
}

std::shared_ptr<PreparedStep> RecordedSteps::add(const RecordedStep& recorded) {
  if (recorded.trace == nullptr) {
    unrecorded_.push_back({recorded.configuration, recorded.failure});
    return nullptr;
  }
  return steps_.emplace_back(std::make_shared<PreparedStep>(recorded));
}

std::shared_ptr<PreparedStep> RecordedSteps::find(const Configuration& configuration) const {
  const auto found = std::ranges::find(
      steps_, configuration, [](const auto& step) -> const Configuration& { return step->configuration; });
  return found == steps_.end() ? nullptr : *found;
}

RecordedSteps::Steps RecordedSteps::nearest(const std::vector<const Way*>& ranked, std::size_t most,
                                            std::size_t most_near,
                                            const std::function<bool(const PreparedStep&)>& done) const {
  Steps best, near;
  for (const Way* way : ranked) {
    const auto step = find(way->configuration);
    if (std::ranges::find(best, step) != best.end() || std::ranges::find(near, step) != near.end()) continue;
    const bool may_be_better =
        !way->is_within && (!ranked.front()->is_within ||
                            *way->metrics().step_time_ns < *ranked.front()->metrics().step_time_ns);
    if (best.size() < most)
      best.push_back(step);
    else if (near.size() < most_near && may_be_better && !done(*step))
      near.push_back(step);
  }
  best.insert(best.end(), near.begin(), near.end());
  return best;
}

bool RecordedSteps::has_failed(const Configuration& configuration) const {
  return std::ranges::find(unrecorded_, configuration, &UnrecordedConfiguration::configuration) !=
         unrecorded_.end();
}

}  // namespace offprof
