#include "simulator/tuner/plans/least_memory.h"

#include <algorithm>
#include <unordered_set>
#include <utility>

#include "simulator/replay/virtual_executor.h"
#include "simulator/replay/virtual_memory.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

constexpr std::size_t kNone = kNoEvent;

/// Returns what a step leaves that has offloaded everything.
CarriedMemory nothing_held(const Step& step) {
  return {std::vector<char>(step.renewals().size(), 0), {}};
}

class Follower {
 public:
  Follower(const Step& step, const std::vector<MovableVersion>& versions)
      : step_(step),
        memory_(step.storage_bytes(), VirtualExecutor::resident_bytes(step, nothing_held(step))),
        version_of_(step.requests().size(), kNone),
        unpacked_(step.requests().size(), 0),
        asked_(step.requests().size(), 0),
        waiting_(step.storage_bytes().size()),
        open_gap_(step.storage_bytes().size(), {kNone, 0}) {
    for (const std::int32_t storage : step.residents()) memory_.hold_resident(storage);
    for (const Step::StepRenewal& renewal : step.renewals())
      if (!renewal.is_programs) leave_out(renewal.old_storage);
    for (std::size_t v = 0; v < versions.size(); ++v)
      for (const SavedId tensor : versions[v].tensors) version_of_[tensor] = v;
  }

  LeastMemory follow() {
    const auto events = step_.events();
    for (std::size_t e = 0; e < events.size(); ++e) {
      const Bytes peak_before = memory_.peak_bytes();
      for (const Step::LetGo& let_go : step_.let_goes(e)) {
        free_unpacked(let_go.storage);
        is_gone_.insert(let_go.storage);
      }
      replay(events[e]);
      if (memory_.peak_bytes() > peak_before) least_.peak_event = e;
      least_.after_event.push_back(memory_.live_bytes());
      for (const std::int32_t storage : std::exchange(touched_, {})) note_gap(storage, e);
    }
    for (std::size_t storage = 0; storage < open_gap_.size(); ++storage)
      close_gap(static_cast<std::int32_t>(storage), events.size());
    least_.peak = memory_.peak_bytes();
    return std::move(least_);
  }

 private:
  struct OpenGap {
    std::size_t version;
    std::size_t begin;
  };

  void replay(const Event& event) {
    switch (event.kind) {
      case EventKind::kAlloc:
        return hold(event.id);
      case EventKind::kFreeRequested:  // at the earliest
        if (!step_.free_points_of(event.id).empty()) free_unpacked(event.id);
        return;
      case EventKind::kFree:
        if (!step_.free_points_of(event.id).empty()) return;
        if (!is_gone_.contains(event.id)) free_unpacked(event.id);
        return;
      case EventKind::kPack:
        return pack(event.id);
      case EventKind::kRelease:
        return release(event.id);
      case EventKind::kUnpack:
        return unpack(event.id);
      case EventKind::kNodeEnd:
        for (const SavedId tensor : std::exchange(node_tensors_, {}))
          if (!step_.escapes(tensor) && unpacked_[tensor] != 0) program_lets_go(tensor);
        return;
      case EventKind::kFreeUnpacked:
        return program_lets_go(event.id);
      default:
        return;
    }
  }

  void pack(SavedId tensor) {
    if (!is_movable(tensor)) return hold(storage_of(tensor));
    waiting_[storage_of(tensor)].push_back(tensor);
    touched_.push_back(storage_of(tensor));
  }

  void release(SavedId tensor) {
    if (!is_movable(tensor)) return free_unpacked(storage_of(tensor));
    std::erase(waiting_[storage_of(tensor)], tensor);
    touched_.push_back(storage_of(tensor));
    if (std::exchange(asked_[tensor], 0) != 0) free_unpacked(storage_of(tensor));
  }

  /// A tensor that was unpacked before and is still in use is not held twice. An unpacked tensor stays until
  /// its release.
  void unpack(SavedId tensor) {
    if (is_movable(tensor) && std::exchange(asked_[tensor], 1) == 0) hold(storage_of(tensor));
    if (std::exchange(unpacked_[tensor], 1) != 0) return;
    hold(storage_of(tensor));
    node_tensors_.push_back(tensor);
  }

  void program_lets_go(SavedId tensor) {
    OFFPROF_CHECK(unpacked_[tensor] != 0);
    unpacked_[tensor] = 0;
    free_unpacked(storage_of(tensor));
  }

  /// The step before has offloaded what is not on the device for the program's sake.
  void leave_out(std::int32_t storage) {
    memory_.remove_resident(storage);
    is_gone_.insert(storage);
  }

  void hold(std::int32_t storage) {
    memory_.hold(storage);
    touched_.push_back(storage);
  }
  void free_unpacked(std::int32_t storage) {
    memory_.free_unpacked(storage);
    touched_.push_back(storage);
  }

  void note_gap(std::int32_t storage, std::size_t event) {
    const auto& waiting = waiting_[storage];
    const std::size_t version =
        memory_.is_live(storage) || waiting.empty() ? kNone : version_of_[waiting.front()];
    if (version == open_gap_[storage].version) return;
    close_gap(storage, event);
    open_gap_[storage] = {version, event};
  }

  void close_gap(std::int32_t storage, std::size_t event) {
    const OpenGap& gap = open_gap_[storage];
    if (gap.version != kNone && gap.begin < event) least_.gaps.push_back({gap.version, gap.begin, event});
  }

  bool is_movable(SavedId tensor) const { return version_of_[tensor] != kNone; }
  std::int32_t storage_of(SavedId tensor) const {
    return static_cast<std::int32_t>(step_.requests()[tensor].storage);
  }

  const Step& step_;
  VirtualMemory memory_;
  std::vector<std::size_t> version_of_;  ///< by saved tensor; kNone: it may not move
  std::vector<char> unpacked_;           ///< by saved tensor: true if the program holds what unpack returned
  std::vector<char> asked_;              ///< by saved tensor: unpacked and not released
  std::vector<std::vector<SavedId>> waiting_;  ///< by storage: movable tensors, saved and not released
  std::vector<OpenGap> open_gap_;              ///< by storage
  std::unordered_set<std::int32_t> is_gone_;   ///< storages of the step before, which the step need not hold
  std::vector<std::int32_t> touched_;          ///< storages that the current event affects
  std::vector<SavedId> node_tensors_;
  LeastMemory least_;
};

}  // namespace

LeastMemory least_memory_of(const Step& step, const std::vector<MovableVersion>& versions) {
  return Follower(step, versions).follow();
}

}  // namespace offprof
