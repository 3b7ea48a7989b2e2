#pragma once

#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// Insertions, deletions, replacements and swaps of neighbours that turn one word into the other (the
/// restricted Damerau-Levenshtein distance).
std::size_t edit_distance(std::string_view from, std::string_view to);

/// Returns the candidate that `word` was probably meant to be: the only one that begins with it, or the
/// nearest, with at most a third of the letters wrong. nullopt where there is none.
std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates);

/// ``Did you mean `run`?``, or nothing.
std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates);

}  // namespace offprof
