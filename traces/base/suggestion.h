#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// Returns the number of insertions, deletions, replacements and swaps of neighbours that turn `from` into
/// `to` (the restricted Damerau-Levenshtein distance).
std::size_t edit_distance(std::string_view from, std::string_view to);

/// Returns the candidate that `word` probably means: the only candidate that begins with it, or else the
/// nearest one with at most a third of the letters wrong. nullopt if there is none.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// Returns ``Did you mean `run`?``, or an empty string.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace offprof
