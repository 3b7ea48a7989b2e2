#include "profiler/recording/step_groups.h"

#include <algorithm>
#include <charconv>
#include <map>
#include <numeric>
#include <utility>

#include "profiler/recording/program_builder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Returns true if the passes have the same step program. Compares the saved tensors first, which is fast.
bool is_alike(const RecordedPass& a, const RecordedPass& b) {
  const auto same_layout = [](const RawSaved& one, const RawSaved& other) {
    return one.saved.layout == other.saved.layout;
  };
  return std::ranges::equal(a.saved, b.saved, same_layout) && same_program(a, b);
}

/// Returns the number of saved tensors in the device's memory, and their bytes.
std::pair<std::int64_t, Bytes> saved_on_device(const RecordedPass& pass) {
  std::pair<std::int64_t, Bytes> sum;
  for (const RawSaved& saved : pass.saved) {
    if (saved.storage == 0) continue;
    ++sum.first;
    sum.second += saved.saved.bytes;
  }
  return sum;
}

/// Allocations of more bytes come from segments for a few of them, which later steps find in the cache.
constexpr Bytes kLargestSmallBlock = kMiB;

/// Returns the sizes of the pass's large allocations that it frees again. What stays, such as the buckets of
/// DDP, leaves no blocks behind.
std::set<Bytes> large_blocks(const RecordedPass& pass) {
  std::map<std::int64_t, Bytes> allocated;
  std::set<Bytes> sizes;
  for (const RawEvent& event : pass.events) {
    if (event.kind == RawKind::kAlloc && event.value > kLargestSmallBlock) allocated[event.id] = event.value;
    if (event.kind != RawKind::kFree) continue;
    const auto freed = allocated.find(event.id);
    if (freed != allocated.end()) sizes.insert(freed->second);
  }
  return sizes;
}

}  // namespace

ShapeChoice parse_shape(const std::string& text) {
  if (text == "most-frequent") return {};
  if (text == "largest") return {.is_largest = true};
  ShapeChoice choice;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), choice.rank);
  if (failure != std::errc() || end != text.data() + text.size() || choice.rank < 1)
    throw input_error("--shape: '" + text + "' is not a choice among steps",
                      "Write most-frequent, largest, or a number N for the N-th most frequent kind of step.");
  return choice;
}

void StepGroups::add(StepResult step) {
  ++steps_;
  const auto is_of = [&](const Group& group) {
    return is_alike(group.steps.front().recording, step.recording);
  };
  auto group = std::ranges::find_if(groups_, is_of);
  if (group == groups_.end()) {
    groups_.emplace_back();
    group = std::prev(groups_.end());
    group->about.saved_tensors = static_cast<std::int64_t>(step.recording.saved.size());
    group->about.peak_bytes = peak_of(step.recording);
    group->saved_on_device = saved_on_device(step.recording);
    group->large_blocks = large_blocks(step.recording);
  }
  ++group->about.steps;
  if (std::ssize(group->steps) < wanted_) group->steps.push_back(std::move(step));
}

std::vector<std::size_t> StepGroups::by_frequency() const {
  std::vector<std::size_t> order(groups_.size());
  std::iota(order.begin(), order.end(), 0);
  std::ranges::stable_sort(order, std::ranges::greater(),
                           [&](std::size_t i) { return groups_[i].about.steps; });
  return order;
}

/// Returns the group that the choice names now; nullopt: it is not known yet.
std::optional<std::size_t> StepGroups::candidate() const {
  if (groups_.empty()) return std::nullopt;
  const std::vector<std::size_t> order = by_frequency();
  if (!choice_.is_largest && choice_.rank == 1) return order.front();
  if (steps_ < kObservedSteps) return std::nullopt;
  if (choice_.is_largest)
    return *std::ranges::max_element(order, {}, [&](std::size_t i) { return groups_[i].about.peak_bytes; });
  if (choice_.rank > std::ssize(order)) return std::nullopt;
  return order[static_cast<std::size_t>(choice_.rank - 1)];
}

std::optional<std::vector<StepResult>> StepGroups::choose() {
  const std::optional<std::size_t> chosen = candidate();
  if (!chosen || std::ssize(groups_[*chosen].steps) < wanted_) return std::nullopt;
  groups_[*chosen].about.is_recorded = true;
  return std::move(groups_[*chosen].steps);
}

std::vector<StepGroup> StepGroups::summary() const {
  std::vector<StepGroup> groups;
  for (const std::size_t i : by_frequency()) groups.push_back(groups_[i].about);
  return groups;
}

bool StepGroups::differ_in_shapes() const {
  const auto chosen =
      std::ranges::find_if(groups_, [](const Group& group) { return group.about.is_recorded; });
  const auto differs = [&](const Group& group) {
    return group.saved_on_device != groups_.front().saved_on_device ||
           (chosen != groups_.end() && !std::ranges::includes(chosen->large_blocks, group.large_blocks));
  };
  return std::ranges::any_of(groups_, differs);
}

}  // namespace offprof
