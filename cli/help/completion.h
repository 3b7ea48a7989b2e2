#pragma once

#include <CLI/App.hpp>
#include <string>
#include <vector>

#include "cli/help/value_candidates.h"

namespace offprof {

/// First word of the command line with which the scripts of completion_scripts.h ask for candidates; the
/// words of the user's command line follow it.
inline constexpr const char* kCompleteWord = "__complete";

/// A word that may stand at the end of a command line.
struct CompletionCandidate {
  std::string word;
  std::string description;  ///< one line; empty: none
};

/// The words that may stand at the end of a command line.
struct Completion {
  ShellNames shell_names = ShellNames::kNone;
  std::vector<CompletionCandidate> candidates;
};

/// Completes the last of `words`, which may be empty. `words` lacks the name of the program, and is not
/// empty. `program` has a sub-command for each command.
Completion complete(const CLI::App& program, const std::vector<std::string>& words);

/// Returns the text that the scripts read: a line `none`, `files`, `folders` or `programs`, followed by a
/// line for each candidate, which is its word, a blank and its description.
std::string to_lines(const Completion& completion);

}  // namespace offprof
