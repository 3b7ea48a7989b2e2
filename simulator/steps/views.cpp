#include "simulator/steps/views.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "simulator/replay/replay.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

class LedgerListener final : public ReplayListener {
 public:
  LedgerListener(const StepProgram& program, const StepPlacements& placements)
      : program_(program), placements_(placements) {}
  void on_placement(SavedId tensor, const PackDecision& decision) override {
    LedgerEntry& entry =
        ledger_[{decision.place, decision.reason, transform_of(placements_, tensor, decision)}];
    ++entry.tensors;
    entry.bytes += program_.saved[tensor].bytes;
  }
  Ledger take() { return std::move(ledger_); }

 private:
  const StepProgram& program_;
  const StepPlacements& placements_;
  Ledger ledger_;
};

class CommandListener final : public ReplayListener {
 public:
  void on_command(const Command& command, Nanoseconds) override { commands_.push_back(command); }
  std::vector<Command> take() { return std::move(commands_); }

 private:
  std::vector<Command> commands_;
};

class MemoryListener final : public ReplayListener {
 public:
  void on_memory(Bytes device_bytes, Bytes host_bytes, Nanoseconds now) override {
    const bool is_same = !points_.empty() && device_bytes == points_.back().device_bytes &&
                         host_bytes == points_.back().host_bytes;
    if (!is_same) points_.push_back({now, device_bytes, host_bytes});
  }
  std::vector<MemoryPoint> take() { return std::move(points_); }

 private:
  std::vector<MemoryPoint> points_;
};

/// Follows the storages that the engine holds, up to and including the event that reached the peak.
class ContentListener final : public ReplayListener {
 public:
  ContentListener(const Step& step, std::size_t peak_event) : step_(step), peak_event_(peak_event) {}

  void on_absent(std::int32_t storage) override { freed_.push_back(storage); }

  void on_carried(const CarriedCopy& copy, std::int32_t storage) override {
    carried_.emplace(storage, copy.device_bytes);
  }

  void on_allocate(std::int32_t storage, Bytes bytes) override {
    if (reached_ <= peak_event_ && step_.holds_parameters(storage)) gathered_[storage] = bytes;
  }

  void on_free(std::int32_t storage) override {
    if (reached_ >= peak_event_) return;
    gathered_.erase(storage);
    freed_.push_back(storage);
    carried_.erase(storage);
  }

  void on_event(std::size_t index, Nanoseconds) override { reached_ = index + 1; }

  void on_command(const Command& command, Nanoseconds) override {
    if (reached_ > peak_event_) return;
    std::visit([this](const auto& each) { follow(each); }, command);
  }

  DeviceContent content(Bytes total) const {
    DeviceContent content;
    content.total = total;
    content.resident = step_.resident_bytes();
    std::vector<char> counted(step_.storage_bytes().size(), 0);
    for (const std::int32_t storage : step_.residents()) counted[storage] = 1;
    for (const std::int32_t storage : freed_)
      if (storage < std::ssize(counted) && std::exchange(counted[storage], 0) != 0)
        content.resident -= step_.storage_bytes()[storage];
    for (const SavedId tensor : kept_) content.kept += count_once(counted, tensor);
    for (const CopyOut& copy : stashed_) content.stashed += count_once(counted, copy.tensor);
    for (const auto& [copy, bytes] : encoded_) content.encoded += bytes;
    content.reloaded = reloaded_bytes_;
    for (const auto& [storage, bytes] : carried_) content.reloaded += bytes;
    for (const auto& [storage, bytes] : gathered_) content.gathered += bytes;
    content.working = total - content.resident - content.kept - content.stashed - content.encoded -
                      content.reloaded - content.gathered;
    return content;
  }

 private:
  void follow(const Keep& command) { kept_.push_back(command.tensor); }
  void follow(const ReleaseKept& command) { std::erase(kept_, command.tensor); }
  void follow(const CopyOut& command) {
    if (!encoded_copies_.contains(command.copy)) stashed_.push_back(command);
  }
  void follow(const CopyIn& command) {
    if (!encoded_copies_.contains(command.copy)) return add_reloaded(command);
    encoded_[command.copy] = command.bytes;
  }
  void follow(const Encode& command) {
    encoded_copies_.insert(command.copy);
    encoded_[command.copy] = command.bytes;
  }
  void follow(const Decode& command) {
    encoded_copies_.erase(command.copy);
    encoded_.erase(command.copy);
    add_reloaded(command);
  }
  void follow(const Recompute& command) { add_reloaded(command); }
  void follow(const Drop& command) {
    if (encoded_.erase(command.copy) > 0) return;
    const auto reloaded = std::find(reloaded_.begin(), reloaded_.end(), command.copy);
    if (reloaded != reloaded_.end()) {
      reloaded_.erase(reloaded);
      reloaded_bytes_ -= command.bytes;
    } else {
      std::erase_if(stashed_, [&](const CopyOut& copy) { return copy.copy == command.copy; });
    }
  }
  /// The engine holds the same storages after these.
  void follow(const OneOf<DropForRecompute, WaitOut, WaitIn, FreeHost, TakeDisk, WriteDisk, WaitWrite,
                          ReadDisk, WaitRead, FreeDisk> auto& /*command*/) {}

  void add_reloaded(const CopyCommand& command) {
    reloaded_bytes_ += command.bytes;
    reloaded_.push_back(command.copy);
  }

  Bytes count_once(std::vector<char>& counted, SavedId tensor) const {
    const std::int64_t storage = step_.requests()[tensor].storage;
    return std::exchange(counted[storage], 1) != 0 ? 0 : step_.storage_bytes()[storage];
  }

  const Step& step_;
  std::size_t peak_event_;
  std::size_t reached_ = 0;
  std::vector<std::int32_t> freed_;
  std::vector<SavedId> kept_;
  std::vector<CopyOut> stashed_;
  std::set<CopyId> encoded_copies_;  ///< not decoded yet
  std::map<CopyId, Bytes> encoded_;  ///< bytes on the device of those
  std::vector<CopyId> reloaded_;
  std::multimap<std::int32_t, Bytes>
      carried_;  ///< by the older storage: copies that the step before has left
  Bytes reloaded_bytes_ = 0;
  std::map<std::int32_t, Bytes> gathered_;  ///< by storage
};

class StallListener final : public ReplayListener {
 public:
  void on_stall(const Stall& stall) override { stalls_.push_back(stall); }
  std::vector<Stall> take() {
    std::stable_sort(stalls_.begin(), stalls_.end(),
                     [](const Stall& a, const Stall& b) { return a.duration_ns > b.duration_ns; });
    return std::move(stalls_);
  }

 private:
  std::vector<Stall> stalls_;
};

}  // namespace

Ledger replay_ledger(const StepProgram& program, const Step& step, const Policy& policy) {
  const StepPlacements placements = step.place(policy);
  LedgerListener listener(program, placements);
  replay(step, policy, kAnyLink, &listener);
  return listener.take();
}

std::vector<Command> replay_commands(const Step& step, const Policy& policy) {
  CommandListener listener;
  replay(step, policy, kAnyLink, &listener);
  return listener.take();
}

std::vector<MemoryPoint> memory_over_step(const Step& step, const Policy& policy, const Link& link) {
  MemoryListener listener;
  replay(step, policy, link, &listener);
  return listener.take();
}

DeviceContent content_at_peak(const Step& step, const Policy& policy, const Link& link) {
  const Prediction prediction = replay(step, policy, link);
  ContentListener listener(step, prediction.peak_event);
  replay(step, policy, link, &listener);
  return listener.content(*prediction.metrics.device_peak_bytes);
}

ProgramPlace place_of_event(const StepProgram& program, const Step& step, std::size_t index) {
  ProgramPlace place;
  if (index >= step.program_index().size()) return place;  // the peak of a step without events is in none
  int open = 0;
  for (std::int32_t i = 0; i <= step.program_index()[index]; ++i) {
    const Event& event = program.events[i];
    if (event.kind == EventKind::kPhase) place.phase = program.names[event.id];
    if (event.kind == EventKind::kOpBegin && open++ == 0) place.op = program.names[event.id];
    if (event.kind == EventKind::kOpEnd && --open == 0) place.op.clear();
  }
  return place;
}

std::vector<Stall> stalls(const Step& step, const Policy& policy, const Link& link) {
  StallListener listener;
  replay(step, policy, link, &listener);
  return listener.take();
}

}  // namespace offprof
