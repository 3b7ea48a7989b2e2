#pragma once

#include <string_view>
#include <utility>
#include <vector>

namespace offprof {

/// The built-in profiles, by name, as the texts of their files; generated from profiles/*.json by the build.
const std::vector<std::pair<std::string_view, std::string_view>>& built_in_profiles();

}  // namespace offprof
