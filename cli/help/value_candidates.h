#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace offprof {

/// Names that the shell itself completes.
enum class ShellNames { kNone, kFiles, kFolders, kPrograms };

/// Candidates for a value on the command line.
struct ValueCandidates {
  std::vector<std::string> words;
  ShellNames shell_names = ShellNames::kNone;
};

/// Returns the candidates for a value from the type that help shows for it: alternatives between `|`.
///
///   text, json           a word in lower case stands for itself
///   virtual[:PROFILE]    a part in brackets may follow; it is a candidate if its kind has candidates
///   FILE, PATH, DIR      names of files or folders
///   PROGRAM              names of programs
///   PRESET, PROFILE, MODEL   names of policies, of GPU profiles (or files), of models of the zoo
///
/// Other words in upper case, such as BYTES, have no candidates.
ValueCandidates candidates_of_type(std::string_view type);

}  // namespace offprof
