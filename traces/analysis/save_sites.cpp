#include "traces/analysis/save_sites.h"

#include <algorithm>
#include <cctype>
#include <iterator>
#include <optional>
#include <span>
#include <tuple>
#include <utility>

namespace offprof {
namespace {

/// Replaces the parts of a dotted path that are numbers by `*`.
std::string without_numbers(const std::string& path) {
  std::string result;
  for (std::size_t begin = 0; begin <= path.size();) {
    const std::size_t end = std::min(path.find('.', begin), path.size());
    const std::string part = path.substr(begin, end - begin);
    const bool is_number =
        !part.empty() && std::ranges::all_of(part, [](unsigned char c) { return std::isdigit(c) != 0; });
    result += (begin == 0 ? "" : ".") + (is_number ? "*" : part);
    begin = end + 1;
  }
  return result;
}

std::string name_at(const StepProgram& program, std::int32_t index) {
  return index < 0 ? std::string() : program.names.at(index);
}

std::string file_of(const std::string& line) {
  return line.substr(0, line.rfind(':'));
}

SaveSite site_of(const SavedTensor& saved, const StepProgram& program) {
  return {program.names.at(saved.op), without_numbers(name_at(program, saved.module)),
          name_at(program, saved.line)};
}

/// Takes `forward (model.py:12)` apart.
SaveSite site_of_place(const std::string& place) {
  const std::size_t space = place.rfind(" (");
  if (space == std::string::npos || !place.ends_with(')')) return {.op = place, .module = "", .line = ""};
  return {
      .op = place.substr(0, space), .module = "", .line = place.substr(space + 2, place.size() - space - 3)};
}

/// Pairs places that only one side has with those among their neighbours that only the other side has and
/// that save the same, and removes both.
std::vector<SiteDifference> without_moved(std::vector<SiteDifference> neighbours) {
  std::multimap<std::pair<std::int64_t, Bytes>, std::size_t> appeared;
  for (std::size_t i = 0; i < neighbours.size(); ++i)
    if (neighbours[i].base.tensors == 0)
      appeared.emplace(std::pair(neighbours[i].now.tensors, neighbours[i].now.bytes), i);
  std::vector<char> is_moved(neighbours.size(), 0);
  for (std::size_t i = 0; i < neighbours.size(); ++i) {
    const SiteDifference& gone = neighbours[i];
    if (gone.now.tensors != 0) continue;
    const auto same = appeared.find({gone.base.tensors, gone.base.bytes});
    if (same == appeared.end()) continue;
    is_moved[i] = is_moved[same->second] = 1;
    appeared.erase(same);
  }
  std::vector<SiteDifference> rest;
  for (std::size_t i = 0; i < neighbours.size(); ++i)
    if (is_moved[i] == 0) rest.push_back(std::move(neighbours[i]));
  return rest;
}

/// Where a place may have moved to.
enum class MovedWithin { kFile, kProgram };

/// Removes pairs of places of the same operator and module that save the same.
std::vector<SiteDifference> without_moved(MovedWithin within, std::vector<SiteDifference> differences) {
  std::map<std::tuple<std::string, std::string, std::string>, std::vector<SiteDifference>> by_file;
  for (SiteDifference& difference : differences) {
    const SaveSite& site = difference.site;
    const std::string file = within == MovedWithin::kFile ? file_of(site.line) : "";
    by_file[{site.op, site.module, file}].push_back(std::move(difference));
  }
  std::vector<SiteDifference> rest;
  for (auto& [file, neighbours] : by_file)
    std::ranges::move(without_moved(std::move(neighbours)), std::back_inserter(rest));
  return rest;
}

}  // namespace

SavedBySite saved_by_site(const StepProgram& program) {
  SavedBySite saved;
  for (const SavedTensor& tensor : program.saved) {
    LedgerEntry& entry = saved[site_of(tensor, program)];
    ++entry.tensors;
    entry.bytes += tensor.bytes;
  }
  return saved;
}

SavedBySite in_use_at_peak(const StepProgram& program) {
  Bytes live = 0, peak = 0;
  std::size_t end = 0;  // of the events until the peak
  for (std::size_t i = 0; i < program.events.size(); ++i) {
    const Event& event = program.events[i];
    if (event.kind == EventKind::kAlloc) live += program.storages[event.id].bytes;
    if (event.kind == EventKind::kFree) live -= program.storages[event.id].bytes;
    if (live > peak) std::tie(peak, end) = std::pair(live, i + 1);
  }
  std::map<std::int32_t, SaveSite> in_use;  // by storage
  SaveSite site;
  for (const Event& event : std::span(program.events).first(end)) {
    if (event.kind == EventKind::kOpBegin) site = site_of_place(program.names.at(event.id));
    if (event.kind == EventKind::kOpEnd) site = {};
    if (event.kind == EventKind::kAlloc) in_use[event.id] = site;
    if (event.kind == EventKind::kFree) in_use.erase(event.id);
  }
  for (const SavedTensor& saved : program.saved)
    if (const auto found = in_use.find(saved.storage); found != in_use.end())
      found->second = site_of(saved, program);
  SavedBySite used;
  for (const auto& [storage, allocated_at] : in_use) {
    LedgerEntry& entry = used[allocated_at];
    ++entry.tensors;
    entry.bytes += program.storages[storage].bytes;
  }
  return used;
}

nlohmann::ordered_json to_json(const SavedBySite& saved) {
  auto json = nlohmann::ordered_json::array();
  for (const auto& [site, entry] : saved) {
    nlohmann::ordered_json row = {{"op", site.op}};
    if (!site.module.empty()) row["module"] = site.module;
    if (!site.line.empty()) row["line"] = site.line;
    row["tensors"] = entry.tensors;
    row["bytes"] = entry.bytes;
    json.push_back(std::move(row));
  }
  return json;
}

SavedBySite saved_by_site_from_json(const JsonValue& json) {
  const auto text = [](const std::optional<JsonValue>& value) {
    return value ? value->as_string() : std::string();
  };
  SavedBySite saved;
  for (std::size_t i = 0; i < json.size(); ++i) {
    const JsonValue row = json.element(i);
    const SaveSite site{row.at("op").as_string(), text(row.find("module")), text(row.find("line"))};
    saved[site] = {row.at("tensors").as_integer(), row.at("bytes").as_integer()};
  }
  return saved;
}

std::vector<SiteDifference> site_differences(const SavedBySite& base, const SavedBySite& now) {
  if (base.empty() || now.empty()) return {};
  std::map<SaveSite, SiteDifference> by_site;
  for (const auto& [site, entry] : base) by_site[site].base = entry;
  for (const auto& [site, entry] : now) by_site[site].now = entry;
  std::vector<SiteDifference> differences;
  for (auto& [site, difference] : by_site) {
    if (difference.base == difference.now) continue;
    difference.site = site;
    differences.push_back(std::move(difference));
  }
  differences = without_moved(MovedWithin::kFile, std::move(differences));
  differences = without_moved(MovedWithin::kProgram, std::move(differences));
  std::ranges::stable_sort(differences, std::ranges::greater(), &SiteDifference::difference);
  return differences;
}

}  // namespace offprof
