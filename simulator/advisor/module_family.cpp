#include "simulator/advisor/module_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <map>
#include <set>
#include <string_view>
#include <utility>

namespace offprof {
namespace {

/// Modules that save fewer storages than this are checkpointed for nothing: their inputs stay saved.
constexpr std::size_t kLeastStoragesPerModule = 2;

bool is_digit(char letter) {
  return std::isdigit(static_cast<unsigned char>(letter)) != 0;
}

/// Returns the path with `*` for each number in it.
std::string pattern_of(std::string_view path) {
  std::string pattern;
  for (const char letter : path) {
    if (!is_digit(letter))
      pattern += letter;
    else if (pattern.empty() || pattern.back() != '*')
      pattern += '*';
  }
  return pattern;
}

struct FamilyDraft {
  ModuleFamily family;
  std::set<std::string, std::less<>> known;
  std::set<std::int32_t> storages;
};

using Drafts = std::map<std::string, FamilyDraft>;

void add(Drafts& drafts, std::string_view path, std::int32_t storage, Bytes bytes) {
  const std::string pattern = pattern_of(path);
  if (pattern == path) return;
  FamilyDraft& draft = drafts[pattern];
  draft.family.pattern = pattern;
  if (!draft.known.contains(path)) {
    draft.known.emplace(path);
    draft.family.paths.emplace_back(path);
  }
  if (draft.storages.insert(storage).second) draft.family.saved_bytes += bytes;
}

bool is_worth_checkpointing(const FamilyDraft& draft) {
  const std::size_t modules = draft.family.paths.size();
  return modules >= 2 && draft.storages.size() >= kLeastStoragesPerModule * modules;
}

/// Returns true if a pattern of fewer parts saves the same storages.
bool has_equal_outer(const Drafts& drafts, const FamilyDraft& draft) {
  return std::ranges::any_of(drafts, [&](const auto& entry) {
    const std::string outer = entry.first + ".";
    return draft.family.pattern.starts_with(outer) && entry.second.storages == draft.storages &&
           is_worth_checkpointing(entry.second);
  });
}

}  // namespace

std::vector<ModuleFamily> module_families(const StepProgram& program) {
  Drafts drafts;
  for (const SavedTensor& saved : program.saved) {
    if (saved.module < 0 || saved.storage < 0 || saved.movability != Movability::kMovable) continue;
    const std::string_view path = program.names[static_cast<std::size_t>(saved.module)];
    const Bytes bytes = program.storages[static_cast<std::size_t>(saved.storage)].bytes;
    for (std::size_t end = path.find('.'); end != std::string_view::npos; end = path.find('.', end + 1))
      add(drafts, path.substr(0, end), saved.storage, bytes);
    add(drafts, path, saved.storage, bytes);
  }
  std::vector<ModuleFamily> families;
  for (const auto& [pattern, draft] : drafts)
    if (is_worth_checkpointing(draft) && !has_equal_outer(drafts, draft)) families.push_back(draft.family);
  std::ranges::stable_sort(families, [](const ModuleFamily& a, const ModuleFamily& b) {
    return std::pair(-a.saved_bytes, a.pattern.size()) < std::pair(-b.saved_bytes, b.pattern.size());
  });
  return families;
}

std::vector<std::string> evenly_spread(const std::vector<std::string>& paths, std::size_t count) {
  std::vector<std::string> chosen;
  for (std::size_t i = 0; i < count; ++i) chosen.push_back(paths[i * paths.size() / count]);
  return chosen;
}

std::string checkpoint_name(const ModuleFamily& family, std::size_t count, bool is_first) {
  if (count == family.paths.size()) return fmt::format("checkpoint all {} {}", count, family.pattern);
  return fmt::format("checkpoint {}{} of {} {}", is_first ? "the first " : "", count, family.paths.size(),
                     family.pattern);
}

}  // namespace offprof
