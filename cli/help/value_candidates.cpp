#include "cli/help/value_candidates.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "engine/devices/virtual_gpu/model/profile.h"
#include "engine/models/zoo/models.h"
#include "traces/model/policy.h"

namespace offprof {
namespace {

std::vector<std::string> zoo_names() {
  std::vector<std::string> names;
  for (const ZooModel& model : zoo_models()) names.push_back(model.name);
  return names;
}

/// Returns the candidates of a word in upper case.
ValueCandidates candidates_of_kind(std::string_view kind) {
  if (kind == "FILE" || kind == "PATH") return {{}, ShellNames::kFiles};
  if (kind == "DIR") return {{}, ShellNames::kFolders};
  if (kind == "PROGRAM") return {{}, ShellNames::kPrograms};
  if (kind == "PRESET") return {preset_names(), ShellNames::kNone};
  if (kind == "PROFILE") return {profile_names(), ShellNames::kFiles};
  if (kind == "MODEL") return {zoo_names(), ShellNames::kNone};
  return {};
}

/// Returns the candidates of one alternative.
ValueCandidates candidates_of_alternative(std::string_view alternative) {
  if (alternative.empty()) return {};
  const std::size_t bracket = alternative.find('[');
  const std::string word(alternative.substr(0, bracket));
  if (std::isupper(static_cast<unsigned char>(word.front())) != 0) return candidates_of_kind(word);
  ValueCandidates found{{word}, ShellNames::kNone};
  const bool has_option = bracket != std::string_view::npos && alternative.size() > bracket + 2;
  if (!has_option) return found;
  const char separator = alternative[bracket + 1];
  const std::string_view kind = alternative.substr(bracket + 2, alternative.size() - bracket - 3);
  for (const std::string& name : candidates_of_kind(kind).words)
    found.words.push_back(fmt::format("{}{}{}", word, separator, name));
  return found;
}

}  // namespace

ValueCandidates candidates_of_type(std::string_view type) {
  ValueCandidates all;
  for (std::size_t begin = 0; begin <= type.size();) {
    const std::size_t end = std::min(type.find('|', begin), type.size());
    const ValueCandidates some = candidates_of_alternative(type.substr(begin, end - begin));
    all.words.insert(all.words.end(), some.words.begin(), some.words.end());
    if (some.shell_names != ShellNames::kNone) all.shell_names = some.shell_names;
    begin = end + 1;
  }
  return all;
}

}  // namespace offprof
