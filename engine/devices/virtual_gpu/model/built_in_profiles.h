#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace offprof {

/// Names of built-in profiles and the texts of their files.
using BuiltInFiles = std::vector<std::pair<std::string_view, std::string_view>>;

/// Text of a profile file, and its name in errors.
struct ProfileText {
  std::string text, where;
};

std::vector<std::string> names_of(const BuiltInFiles& files);

/// Returns the built-in file of that name, or reads the file at that path (a path ends in `.json` or contains
/// a `/`). nullopt: there is no built-in file of that name. `what` precedes the name in errors. Throws Error
/// (input) if the file cannot be read.
std::optional<ProfileText> find_profile(const BuiltInFiles& files, const std::string& name_or_path,
                                        std::string_view what);

/// Returns the profiles of GPUs. The build generates them from profiles/*.json.
const BuiltInFiles& built_in_profiles();

}  // namespace offprof
