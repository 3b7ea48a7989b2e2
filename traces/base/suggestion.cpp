#include "traces/base/suggestion.h"

#include <algorithm>
#include <utility>

namespace offprof {

std::size_t edit_distance(std::string_view from, std::string_view to) {
  std::vector<std::vector<std::size_t>> table(from.size() + 1, std::vector<std::size_t>(to.size() + 1));
  for (std::size_t i = 0; i <= from.size(); ++i) table[i][0] = i;
  for (std::size_t j = 0; j <= to.size(); ++j) table[0][j] = j;
  for (std::size_t i = 1; i <= from.size(); ++i) {
    for (std::size_t j = 1; j <= to.size(); ++j) {
      const std::size_t replaced = table[i - 1][j - 1] + (from[i - 1] == to[j - 1] ? 0 : 1);
      table[i][j] = std::min({table[i - 1][j] + 1, table[i][j - 1] + 1, replaced});
      const bool swapped = i > 1 && j > 1 && from[i - 1] == to[j - 2] && from[i - 2] == to[j - 1];
      if (swapped) table[i][j] = std::min(table[i][j], table[i - 2][j - 2] + 1);
    }
  }
  return table[from.size()][to.size()];
}

namespace {

/// Returns the only candidate that begins with `word`; nullptr if there is none or more than one.
const std::string* completion_of(std::string_view word, const std::vector<std::string>& candidates) {
  const auto begins = [&](const std::string& candidate) { return candidate.starts_with(word); };
  const auto found = std::find_if(candidates.begin(), candidates.end(), begins);
  if (word.empty() || found == candidates.end()) return nullptr;
  return std::find_if(found + 1, candidates.end(), begins) == candidates.end() ? &*found : nullptr;
}

}  // namespace

std::optional<std::string> nearest(std::string_view word, const std::vector<std::string>& candidates) {
  constexpr std::size_t kLettersPerMistake = 3;
  if (const std::string* completion = completion_of(word, candidates)) return *completion;
  const std::size_t most = std::max<std::size_t>(1, (word.size() + 1) / kLettersPerMistake);
  // A candidate that begins with the word wins over others with the same distance.
  auto best = std::pair(most + 1, false);
  std::optional<std::string> found;
  for (const std::string& candidate : candidates) {
    const auto rank = std::pair(edit_distance(word, candidate), !candidate.starts_with(word));
    if (rank >= best) continue;
    best = rank;
    found = candidate;
  }
  return found;
}

std::string did_you_mean(std::string_view word, const std::vector<std::string>& candidates) {
  const auto found = nearest(word, candidates);
  return found ? "Did you mean `" + *found + "`?" : "";
}

}  // namespace offprof
