#include "simulator/advisor/module_family.h"

#include <fmt/format.h>

#include <algorithm>
#include <cctype>
#include <functional>
#include <map>
#include <numeric>
#include <set>
#include <string_view>
#include <utility>

namespace offprof {
namespace {

/// Modules that save fewer storages than this are checkpointed for nothing: their inputs stay saved.
constexpr std::size_t kLeastStoragesPerModule = 2;
/// A module that saves fewer storages than this part of the family's largest is not one of the repeated ones:
/// an embedding or a head beside the blocks of a Sequential.
constexpr std::size_t kPartOfLargest = 4;

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

struct SavingModule {
  std::string path;
  std::map<std::int32_t, Bytes> storages;  ///< saved bytes by id

  Bytes bytes() const {
    Bytes sum = 0;
    for (const auto& [storage, bytes] : storages) sum += bytes;
    return sum;
  }
};

/// The modules of a pattern, in the order in which they first save a tensor.
using Draft = std::vector<SavingModule>;
using Drafts = std::map<std::string, Draft>;

struct FoundFamily {
  ModuleFamily family;
  std::set<std::int32_t> storages;
};

void add(Drafts& drafts, std::string_view path, std::int32_t storage, Bytes bytes) {
  const std::string pattern = pattern_of(path);
  if (pattern == path) return;
  Draft& draft = drafts[pattern];
  auto module = std::ranges::find(draft, path, &SavingModule::path);
  if (module == draft.end()) module = draft.insert(module, {std::string(path), {}});
  module->storages.emplace(storage, bytes);
}

/// Returns the numbers of the modules by what they save, or nothing if they save about the same.
std::vector<std::size_t> numbers_by_size(const std::vector<Bytes>& saved_bytes) {
  constexpr double kAboutTheSame = 1.5;
  if (saved_bytes.empty()) return {};
  const auto [least, most] = std::ranges::minmax(saved_bytes);
  if (static_cast<double>(most) <= kAboutTheSame * static_cast<double>(least)) return {};
  std::vector<std::size_t> numbers(saved_bytes.size());
  std::iota(numbers.begin(), numbers.end(), std::size_t{0});
  std::ranges::stable_sort(numbers, std::greater(), [&](std::size_t i) { return saved_bytes[i]; });
  return numbers;
}

FoundFamily family_of(const std::string& pattern, const Draft& draft) {
  std::size_t most = 0;
  for (const SavingModule& module : draft) most = std::max(most, module.storages.size());
  FoundFamily found;
  found.family.pattern = pattern;
  std::vector<Bytes> saved_bytes;
  for (const SavingModule& module : draft) {
    if (module.storages.size() * kPartOfLargest < most) continue;
    found.family.paths.push_back(module.path);
    saved_bytes.push_back(module.bytes());
    for (const auto& [storage, bytes] : module.storages)
      if (found.storages.insert(storage).second) found.family.saved_bytes += bytes;
  }
  found.family.has_all_of_pattern = found.family.paths.size() == draft.size();
  found.family.by_size = numbers_by_size(saved_bytes);
  return found;
}

bool is_worth_checkpointing(const FoundFamily& found) {
  const std::size_t modules = found.family.paths.size();
  return modules >= 2 && found.storages.size() >= kLeastStoragesPerModule * modules;
}

/// Returns true if a pattern of fewer parts saves the same storages in no fewer modules.
bool has_equal_outer(const std::vector<FoundFamily>& all, const FoundFamily& found) {
  return std::ranges::any_of(all, [&](const FoundFamily& other) {
    return found.family.pattern.starts_with(other.family.pattern + ".") && other.storages == found.storages &&
           other.family.paths.size() >= found.family.paths.size();
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
  std::vector<FoundFamily> found;
  for (const auto& [pattern, draft] : drafts) {
    found.push_back(family_of(pattern, draft));
    if (!is_worth_checkpointing(found.back())) found.pop_back();
  }
  std::vector<ModuleFamily> families;
  for (const FoundFamily& one : found)
    if (!has_equal_outer(found, one)) families.push_back(one.family);
  std::ranges::stable_sort(families, [](const ModuleFamily& a, const ModuleFamily& b) {
    return std::pair(-a.saved_bytes, a.pattern.size()) < std::pair(-b.saved_bytes, b.pattern.size());
  });
  return families;
}

std::vector<std::string> checkpointed_paths(const ModuleFamily& family, std::size_t count, Chosen chosen) {
  const std::size_t modules = family.paths.size();
  if (count == modules && family.has_all_of_pattern) return {family.pattern};
  std::set<std::size_t> numbers;
  for (std::size_t i = 0; i < count; ++i) {
    if (chosen == Chosen::kFirst)
      numbers.insert(i);
    else if (chosen == Chosen::kShifted)
      numbers.insert((2 * i + 1) * modules / (2 * count));
    else
      numbers.insert(family.is_even() ? i * modules / count : family.by_size[i]);
  }
  std::vector<std::string> paths;
  for (const std::size_t number : numbers) paths.push_back(family.paths[number]);
  return paths;
}

std::string checkpoint_name(const ModuleFamily& family, std::size_t count, Chosen chosen) {
  const std::string modules = family.pattern == "*" ? "modules" : family.pattern;
  if (count == family.paths.size()) return fmt::format("checkpoint all {} {}", count, modules);
  const bool is_largest = chosen == Chosen::kBest && !family.is_even();
  return fmt::format("checkpoint {}{} of {} {}",
                     chosen == Chosen::kFirst ? "the first "
                     : is_largest             ? "the largest "
                                              : "",
                     count, family.paths.size(), modules);
}

}  // namespace offprof
