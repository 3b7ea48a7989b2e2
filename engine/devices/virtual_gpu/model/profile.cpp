#include "engine/devices/virtual_gpu/model/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/devices/virtual_gpu/model/built_in_profiles.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

/// Suggests a profile for an unknown name. `h100` means `h100-80gb`, although `h200` is closer in spelling.
std::string guess_for(const std::string& name, const std::vector<std::string>& names) {
  for (const std::string& candidate : names)
    if (!name.empty() && candidate.starts_with(name + "-")) return "Did you mean `" + candidate + "`?";
  return did_you_mean(name, names);
}

}  // namespace

std::vector<std::string> names_of(const BuiltInFiles& files) {
  std::vector<std::string> names;
  for (const auto& [name, text] : files) names.emplace_back(name);
  return names;
}

std::optional<ProfileText> find_profile(const BuiltInFiles& files, const std::string& name_or_path,
                                        std::string_view what) {
  if (name_or_path.ends_with(".json") || name_or_path.find('/') != std::string::npos)
    return ProfileText{read_file(name_or_path), name_or_path};
  for (const auto& [name, text] : files)
    if (name == name_or_path) return ProfileText{std::string(text), fmt::format("{} {}", what, name)};
  return std::nullopt;
}

std::vector<std::string> profile_names() {
  return names_of(built_in_profiles());
}

DeviceProfile load_profile(const std::string& name_or_path) {
  if (const auto found = find_profile(built_in_profiles(), name_or_path, "profile"))
    return parse_profile(found->text, found->where);
  const std::vector<std::string> names = profile_names();
  const std::string guess = guess_for(name_or_path, names);
  throw input_error(
      fmt::format("no GPU profile is named '{}'; the profiles are {}", name_or_path, fmt::join(names, ", ")),
      guess.empty() ? "Give one of these, or a profile file: virtual:./my-gpu.json" : guess);
}

}  // namespace offprof
