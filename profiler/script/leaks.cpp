#include "profiler/script/leaks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <unordered_map>
#include <utility>

namespace offprof {
namespace {

/// Number of later steps in which a leaked allocation was not freed. Gradients and the like live until the
/// next step.
constexpr std::size_t kLaterSteps = 2;
/// Most places that a description names.
constexpr std::size_t kMostPlaces = 3;

/// Returns the modules and source lines that saved a tensor of a storage, by allocation.
std::unordered_map<std::int64_t, std::string> places_by_storage(const RecordedPass& pass) {
  const auto name_of = [&](std::int32_t index) { return index < 0 ? std::string() : pass.names[index]; };
  std::unordered_map<std::int64_t, std::string> places;
  for (const RawSaved& saved : pass.saved) {
    const std::string module = name_of(saved.saved.module), line = name_of(saved.saved.line);
    std::string place = module.empty() ? "" : ", module " + module;
    if (!line.empty()) place += ", " + line;
    if (!place.empty()) places.emplace(saved.storage, std::move(place));
  }
  return places;
}

}  // namespace

void LeakFinder::add(const RecordedPass& pass) {
  const auto saved_places = places_by_storage(pass);
  std::string op, phase;
  int hooks = 0;
  const auto place_of = [&](std::int64_t allocation) {
    std::string place = fmt::format("{} in {}", op.empty() ? "an allocation" : op, phase);
    if (const auto saved = saved_places.find(allocation); saved != saved_places.end()) place += saved->second;
    return place;
  };
  for (const RawEvent& event : pass.events) {
    hooks += event.kind == RawKind::kHookBegin ? 1 : event.kind == RawKind::kHookEnd ? -1 : 0;
    if (event.kind == RawKind::kPhase) phase = pass.names[event.id];
    if (event.kind == RawKind::kOpBegin && event.value == 0) op = pass.names[event.id];
    if (event.kind == RawKind::kOpEnd && event.value == 0) op.clear();
    if (event.kind == RawKind::kFree) kept_.erase(event.id);
    if (event.kind == RawKind::kAlloc && hooks == 0)
      kept_[event.id] = {passes_, event.value, place_of(event.id)};
  }
  ++passes_;
}

std::optional<std::string> LeakFinder::cause_of(Bytes growth) const {
  if (passes_ <= kLaterSteps) return std::nullopt;
  // By place, the bytes of the last step whose later steps are known.
  std::map<std::string, Bytes> bytes;
  Bytes sum = 0;
  for (const auto& [allocation, kept] : kept_) {
    if (kept.pass != passes_ - 1 - kLaterSteps) continue;
    bytes[kept.place] += kept.bytes;
    sum += kept.bytes;
  }
  std::vector<std::string> places;
  for (const auto& [place, of_place] : bytes)
    if (sum == growth || of_place == growth) places.push_back(place);
  if (places.empty() || (sum != growth && places.size() > 1)) return std::nullopt;
  if (places.size() > kMostPlaces) places.resize(kMostPlaces);
  return fmt::format("{}", fmt::join(places, "; "));
}

}  // namespace offprof
