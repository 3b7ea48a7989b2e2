#include "cli/reports/advice/way_words.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "cli/reports/tuned_configuration.h"

namespace offprof {

RunSettings with_configuration(RunSettings settings, const Configuration& configuration) {
  settings.checkpointed = configuration.checkpointed;
  settings.slices = configuration.slices;
  settings.parameters = configuration.parameters;
  return settings;
}

Configuration configuration_of(const Trace& trace) {
  const RunSettings& settings = trace.settings;
  const auto& allocator = trace.program.allocator;
  const bool expands = allocator && allocator->settings.find("expandable_segments:True") != std::string::npos;
  return {settings.checkpointed, settings.slices, settings.parameters, expands};
}

std::string flags_of(const Configuration& configuration) {
  return flags_of(with_configuration({}, configuration));
}

std::string name_of(const Configuration& configuration) {
  std::string name = flags_of(configuration);
  if (configuration.expands_segments) name += name.empty() ? "expandable segments" : ", expandable segments";
  if (name.empty()) name = "default";
  return configuration.size ? fmt::format("{}, size {}", name, *configuration.size) : name;
}

std::vector<std::string> words_of_way(std::vector<std::string> program, const Way& way,
                                      const std::string& policy_file) {
  std::vector<std::string> words = configuration_words(with_configuration({}, way.configuration));
  words.insert(words.end(), {"--policy", way.policy == preset_policy("keep") ? "keep" : policy_file});
  program.insert(std::ranges::find(program, "--"), words.begin(), words.end());
  return program;
}

PolicyFile policy_file_of(const Way& way) {
  return {way.policy, way.predicted, way.run_fingerprint, way.configuration.parameters,
          way.saved_fingerprint};
}

}  // namespace offprof
