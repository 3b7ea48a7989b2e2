#include "simulator/other_engines/module_paths.h"

#include <algorithm>
#include <optional>
#include <string_view>

namespace offprof {
namespace {

bool is_number(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, [](char c) { return c >= '0' && c <= '9'; });
}

/// Returns the path and all paths above it, the path first, without the model itself.
std::vector<std::string> ancestors_of(const std::string& path) {
  std::vector<std::string> paths;
  for (std::size_t end = path.size(); end != std::string::npos && end > 0; end = path.rfind('.', end - 1))
    paths.push_back(path.substr(0, end));
  return paths;
}

/// Returns true if the path has children among `paths`, and all of them are numbers.
bool is_container(const std::string& path, const std::set<std::string>& paths) {
  bool has_children = false;
  for (const std::string& other : paths) {
    if (other.size() <= path.size() || !is_within(other, path)) continue;
    has_children = true;
    const std::string_view rest = std::string_view(other).substr(path.size() + 1);
    if (!is_number(rest.substr(0, rest.find('.')))) return false;
  }
  return has_children;
}

}  // namespace

bool is_within(const std::string& path, const std::string& root) {
  return path == root || (path.size() > root.size() && path.starts_with(root) && path[root.size()] == '.');
}

std::string block_of(const std::string& path) {
  std::optional<std::string> numbered;
  for (std::size_t begin = 0; begin < path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    if (is_number(std::string_view(path).substr(begin, end - begin))) return path.substr(0, end);
    if (!numbered && is_number(std::string_view(path).substr(end - 1, 1))) numbered = path.substr(0, end);
    begin = end + 1;
  }
  return numbered.value_or(path.substr(0, path.find('.')));
}

std::vector<std::string> covering_paths(const std::set<std::string>& wanted,
                                        const std::set<std::string>& unwanted) {
  std::set<std::string> all = wanted;
  all.insert(unwanted.begin(), unwanted.end());
  std::set<std::string> roots;
  for (const std::string& path : wanted) {
    std::string root;
    for (const std::string& ancestor : ancestors_of(path)) {
      if (std::ranges::any_of(unwanted, [&](const std::string& other) { return is_within(other, ancestor); }))
        break;
      if (!is_container(ancestor, all)) root = ancestor;
    }
    if (!root.empty()) roots.insert(root);
  }
  return {roots.begin(), roots.end()};
}

}  // namespace offprof
