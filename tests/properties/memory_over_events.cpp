#include "tests/properties/memory_over_events.h"

#include <fmt/format.h>

#include <unordered_set>

#include "simulator/replay/replay.h"

namespace offprof {
namespace {

/// Sums up the raw events of a pass.
class PassMemory {
 public:
  explicit PassMemory(const RecordedPass& pass) : pass_(pass) {
    live_.device = pass.resident_bytes;
    for (const RawEvent& event : pass.events)
      if (event.kind == RawKind::kReload) reloads_.insert(event.id);
  }

  std::vector<LiveBytes> at_allocations() {
    for (const RawEvent& event : pass_.events) add(event);
    return points_;
  }

 private:
  void add(const RawEvent& event) {
    if (event.kind == RawKind::kHookBegin) ++hooks_;
    if (event.kind == RawKind::kHookEnd) --hooks_;
    if (event.kind == RawKind::kCommand) add(pass_.commands[static_cast<std::size_t>(event.id)].command);
    if (event.kind == RawKind::kFree) live_.device -= event.value;
    if (event.kind != RawKind::kAlloc) return;
    live_.device += event.value;
    const bool is_engines = hooks_ > 0 || reloads_.contains(event.id);
    if (!is_engines) points_.push_back(live_);
  }
  void add(const Command& command) {
    if (const auto* const out = std::get_if<CopyOut>(&command)) live_.host += out->bytes;
    if (const auto* const read = std::get_if<ReadDisk>(&command)) live_.host += read->bytes;
    if (const auto* const freed = std::get_if<FreeHost>(&command)) live_.host -= freed->bytes;
  }

  const RecordedPass& pass_;
  std::unordered_set<std::int64_t> reloads_;  ///< ids of allocations
  int hooks_ = 0;
  LiveBytes live_;
  std::vector<LiveBytes> points_;
};

class ReplayMemory final : public ReplayListener {
 public:
  explicit ReplayMemory(const Step& step) : step_(step) {}

  void on_event_begin(std::size_t index, Nanoseconds) override {
    is_allocation_ = step_.events()[index].kind == EventKind::kAlloc;
  }
  void on_memory(Bytes device_bytes, Bytes host_bytes, Nanoseconds) override {
    if (is_allocation_) points_.push_back({device_bytes, host_bytes});
  }
  std::vector<LiveBytes> points() && { return std::move(points_); }

 private:
  const Step& step_;
  bool is_allocation_ = false;
  std::vector<LiveBytes> points_;
};

std::string describe(const std::vector<LiveBytes>& points, std::size_t index) {
  if (index >= points.size()) return "no such allocation";
  return fmt::format("{} on the device, {} in host memory", points[index].device, points[index].host);
}

}  // namespace

std::vector<LiveBytes> memory_at_allocations(const RecordedPass& pass) {
  return PassMemory(pass).at_allocations();
}

std::vector<LiveBytes> memory_at_allocations(const Step& step, const Policy& policy) {
  ReplayMemory memory(step);
  replay(step, policy, kAnyLink, &memory);
  return std::move(memory).points();
}

std::optional<std::string> first_difference(const std::vector<LiveBytes>& measured,
                                            const std::vector<LiveBytes>& simulated) {
  if (measured == simulated) return std::nullopt;
  std::size_t index = 0;
  while (index < measured.size() && index < simulated.size() && measured[index] == simulated[index]) ++index;
  return fmt::format("bytes after allocation {}: measured {}; simulated {}", index, describe(measured, index),
                     describe(simulated, index));
}

}  // namespace offprof
