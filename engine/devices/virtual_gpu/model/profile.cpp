#include "engine/devices/virtual_gpu/model/profile.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "engine/devices/virtual_gpu/model/built_in_profiles.h"
#include "traces/base/error.h"
#include "traces/base/suggestion.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

bool is_path(const std::string& name) {
  return name.ends_with(".json") || name.find('/') != std::string::npos;
}

/// Suggests a profile for an unknown name. `h100` means `h100-80gb`, although `h200` is closer in spelling.
std::string guess_for(const std::string& name, const std::vector<std::string>& names) {
  for (const std::string& candidate : names)
    if (!name.empty() && candidate.starts_with(name + "-")) return "Did you mean `" + candidate + "`?";
  return did_you_mean(name, names);
}

}  // namespace

std::vector<std::string> profile_names() {
  std::vector<std::string> names;
  for (const auto& [name, text] : built_in_profiles()) names.emplace_back(name);
  return names;
}

DeviceProfile load_profile(const std::string& name_or_path) {
  if (is_path(name_or_path)) return parse_profile(read_file(name_or_path), name_or_path);
  for (const auto& [name, text] : built_in_profiles()) {
    if (name == name_or_path) return parse_profile(std::string(text), "profile " + name_or_path);
  }
  const std::vector<std::string> names = profile_names();
  const std::string guess = guess_for(name_or_path, names);
  throw input_error(
      fmt::format("no GPU profile is named '{}'; the profiles are {}", name_or_path, fmt::join(names, ", ")),
      guess.empty() ? "Give one of these, or a profile file: virtual:./my-gpu.json" : guess);
}

}  // namespace offprof
