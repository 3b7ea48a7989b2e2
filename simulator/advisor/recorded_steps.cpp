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

bool RecordedSteps::has_failed(const Configuration& configuration) const {
  return std::ranges::find(unrecorded_, configuration, &UnrecordedConfiguration::configuration) !=
         unrecorded_.end();
}

}  // namespace offprof
