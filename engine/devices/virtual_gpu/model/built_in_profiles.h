#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace offprof {

/// Returns the names of the built-in profiles and the texts of their files. The build generates it from
/// profiles/*.json.
const std::vector<std::pair<std::string_view, std::string_view>>& built_in_profiles();

}  // namespace offprof
