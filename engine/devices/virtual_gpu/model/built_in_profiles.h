#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace offprof {

/// Names of built-in profiles and the texts of their files.
using BuiltInFiles = std::vector<std::pair<std::string_view, std::string_view>>;

/// Returns the profiles of GPUs. The build generates them from profiles/*.json.
const BuiltInFiles& built_in_profiles();

}  // namespace offprof
