#pragma once

#include <algorithm>
#include <cstdint>
#include <map>
#include <optional>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "profiler/recording/recorded_pass.h"
#include "traces/base/check.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Returns the kind that the event may have in the step program; nullopt: none.
inline std::optional<EventKind> event_kind(const RawEvent& event) {
  switch (event.kind) {
    case RawKind::kPhase:
      return EventKind::kPhase;
    case RawKind::kOpBegin:
      return event.value == 0 ? std::optional(EventKind::kOpBegin) : std::nullopt;
    case RawKind::kOpEnd:
      return event.value == 0 ? std::optional(EventKind::kOpEnd) : std::nullopt;
    case RawKind::kAlloc:
      return EventKind::kAlloc;
    case RawKind::kFreeRequested:
      return EventKind::kFreeRequested;
    case RawKind::kFree:
      return EventKind::kFree;
    case RawKind::kPack:
      return EventKind::kPack;
    case RawKind::kUnpack:
      return EventKind::kUnpack;
    case RawKind::kRelease:
      return EventKind::kRelease;
    case RawKind::kNodeEnd:
      return EventKind::kNodeEnd;
    case RawKind::kBackwardEnd:
      return EventKind::kBackwardEnd;
    case RawKind::kFetch:
      return EventKind::kFetch;
    case RawKind::kFetched:
      return EventKind::kFetched;
    case RawKind::kSave:
      return EventKind::kSave;
    case RawKind::kProgramFree:
    case RawKind::kFreeUnpacked:
    case RawKind::kReserved:
    case RawKind::kReload:
    case RawKind::kHookBegin:
    case RawKind::kHookEnd:
    case RawKind::kCommand:
      return std::nullopt;
  }
  OFFPROF_CHECK(false);
}

/// A pass with storages numbered instead of named, and with reloads separated.
class NumberedPass {
 public:
  explicit NumberedPass(const RecordedPass& pass) : pass_(pass) {
    for (const RawEvent& event : pass.events) {
      if (event.kind == RawKind::kAlloc) allocated_.insert(event.id);
      if (event.kind == RawKind::kReload) reload_of_.emplace(event.id, static_cast<CopyId>(event.value));
    }
    find_engines_frees();
    find_staging();
    add_saved_residents();
    add_freed_residents();
    for (const RawEvent& event : pass.events) add(event);
  }

  const std::vector<Event>& events() const { return events_; }
  const std::vector<ProgramStorage>& storages() const { return storages_; }
  std::int32_t index_of(std::int64_t storage) const { return storage_index_.at(storage); }
  bool is_reload(std::int64_t allocation) const { return reload_of_.contains(allocation); }
  /// Returns the event's kind in the step program; nullopt: none. Allocations of the engine have none.
  std::optional<EventKind> kind_of(const RawEvent& event) const {
    const std::optional<EventKind> kind = event_kind(event);
    const bool is_engines = staging_.contains(event.id) || reload_of_.contains(event.id);
    return kind == EventKind::kAlloc && is_engines ? std::nullopt : kind;
  }

 private:
  /// Finds storages of the model whose last reference was the engine's. A storage that the model dropped and
  /// later held again, since backward created something that shares it, is not among them.
  void find_engines_frees() {
    std::unordered_set<std::int64_t> held_by_engine;
    int hooks = 0;
    for (const RawEvent& event : pass_.events) {
      hooks += event.kind == RawKind::kHookBegin ? 1 : event.kind == RawKind::kHookEnd ? -1 : 0;
      if (event.kind == RawKind::kProgramFree) held_by_engine.insert(event.id);
      if (hooks > 0 && event.kind == RawKind::kFree && held_by_engine.contains(event.id))
        freed_by_engine_.insert(event.id);
    }
  }

  /// Finds memory that the engine allocated for copies that a tensor's strides prevent from being direct. It
  /// does not belong to the model.
  void find_staging() {
    int hooks = 0;
    for (const RawEvent& event : pass_.events) {
      hooks += event.kind == RawKind::kHookBegin ? 1 : event.kind == RawKind::kHookEnd ? -1 : 0;
      if (hooks > 0 && event.kind == RawKind::kAlloc && !reload_of_.contains(event.id))
        staging_.insert(event.id);
    }
  }

  /// Adds storages that are older than the step and that saved tensors view. 0 stands for memory outside the
  /// device, and for memory that another saved tensor counts for. The program may make its inputs in the
  /// step.
  void add_saved_residents() {
    for (const RawSaved& saved : pass_.saved) {
      if (saved.storage == 0)
        add_storage(0, {0, StorageRole::kResident});
      else if (saved.role != StorageRole::kActivation && !allocated_.contains(saved.storage))
        add_storage(saved.storage, {saved.storage_bytes, saved.role});
    }
  }

  /// Adds storages that are older than the step and that the step frees.
  void add_freed_residents() {
    std::map<std::int64_t, Bytes> freed;
    for (const RawEvent& event : pass_.events)
      if (event.kind == RawKind::kFree && !allocated_.contains(event.id))
        freed.emplace(event.id, event.value);
    for (const auto& [id, bytes] : freed) add_storage(id, {bytes, StorageRole::kResident});
  }

  void add(const RawEvent& event) {
    follow_node(event);
    const std::optional<EventKind> kind = kind_of(event);
    if (event.kind == RawKind::kFreeUnpacked) free_unpacked(static_cast<std::size_t>(event.id));
    if (event.kind == RawKind::kProgramFree && freed_by_engine_.contains(event.id)) add_free(event.id);
    if (!kind || (kind == EventKind::kFree && is_engines_free(event.id))) return;
    if (kind == EventKind::kAlloc) {
      const bool is_gathered = pass_.gathered.contains(event.id);
      add_storage(event.id, {event.value, is_gathered ? StorageRole::kGathered : StorageRole::kActivation});
      events_.push_back({*kind, index_of(event.id), 0});
    } else if (kind == EventKind::kFree) {
      add_free(event.id);
    } else if (kind == EventKind::kFreeRequested) {
      const bool is_models = storage_index_.contains(event.id) && !is_engines_free(event.id);
      if (is_models) {
        end_use_in_node(event.id);
        events_.push_back({*kind, index_of(event.id), 0});
      }
    } else if (kind == EventKind::kFetch || kind == EventKind::kFetched || kind == EventKind::kSave) {
      events_.push_back({*kind, index_of(event.id), 0});
    } else {
      events_.push_back({*kind, static_cast<std::int32_t>(event.id), 0});
    }
  }

  bool is_engines_free(std::int64_t allocation) const {
    return staging_.contains(allocation) || freed_by_engine_.contains(allocation);
  }

  /// Follows the operators of a node. A node's own part is an operator of its name within one of the same
  /// name; autograd shapes the gradients in the outer one. Tensors that the node unpacked are released with
  /// its own part.
  void follow_node(const RawEvent& event) {
    if (event.kind == RawKind::kOpBegin) open_ops_.push_back(event.id);
    if (event.kind == RawKind::kUnpack) {
      node_tensors_.push_back(static_cast<std::int32_t>(event.id));
      node_part_end_.reset();
    }
    if (event.kind == RawKind::kOpEnd && !open_ops_.empty()) {
      open_ops_.pop_back();
      if (!open_ops_.empty() && open_ops_.back() == event.id) node_part_end_ = events_.size();
    }
    if (event.kind == RawKind::kNodeEnd) end_node();
  }

  /// Adds release events only if they matter: if something was allocated between the part's end and the
  /// node's end.
  void end_node() {
    const auto part_end =
        events_.begin() + static_cast<std::ptrdiff_t>(node_part_end_.value_or(events_.size()));
    if (std::any_of(part_end, events_.end(),
                    [](const Event& event) { return event.kind == EventKind::kAlloc; })) {
      std::vector<Event> free_unpacked;
      for (const std::int32_t tensor : node_tensors_)
        if (!pass_.escaped[tensor]) free_unpacked.push_back({EventKind::kFreeUnpacked, tensor, 0});
      events_.insert(part_end, free_unpacked.begin(), free_unpacked.end());
    }
    node_tensors_.clear();
    node_part_end_.reset();
  }

  void add_free(std::int64_t id) {
    const auto reload = reload_of_.find(id);
    if (reload != reload_of_.end()) return add_let_go(reload->second);
    end_use_in_node(id);
    events_.push_back({EventKind::kFree, index_of(id), 0});
  }

  /// Adds the release of the tensors that view a storage which is freed while the node that unpacked them
  /// runs, as compiled code does with each of its inputs after the last use. Such a storage was not moved.
  void end_use_in_node(std::int64_t id) {
    std::erase_if(node_tensors_, [&](std::int32_t tensor) {
      const RawSaved& saved = pass_.saved[static_cast<std::size_t>(tensor)];
      if (saved.storage != id || saved.copy >= 0 || pass_.escaped[tensor]) return false;
      events_.push_back({EventKind::kFreeUnpacked, tensor, 0});
      return true;
    });
  }

  /// Adds the release of the tensors that escaped from a reloaded memory, which is now freed. The releases of
  /// tensors that share a copy may show that they were released earlier.
  void add_let_go(CopyId copy) {
    for (std::size_t tensor = 0; tensor < pass_.saved.size(); ++tensor)
      if (pass_.saved[tensor].copy == copy) free_unpacked(tensor);
  }

  void free_unpacked(std::size_t tensor) {
    if (!pass_.escaped[tensor] || !let_go_.insert(tensor).second) return;
    events_.push_back({EventKind::kFreeUnpacked, static_cast<std::int32_t>(tensor), 0});
  }

  void add_storage(std::int64_t id, ProgramStorage storage) {
    if (!storage_index_.try_emplace(id, static_cast<std::int32_t>(storages_.size())).second) return;
    if (const auto stream = pass_.streams.find(id); stream != pass_.streams.end())
      storage.stream = stream->second;
    storages_.push_back(storage);
  }

  const RecordedPass& pass_;
  std::unordered_set<std::int64_t> allocated_;          ///< in the step
  std::unordered_map<std::int64_t, CopyId> reload_of_;  ///< by allocation
  std::unordered_set<std::int64_t> staging_;            ///< allocations
  std::unordered_set<std::int64_t> freed_by_engine_;    ///< allocations of the model
  std::unordered_map<std::int64_t, std::int32_t> storage_index_;
  std::vector<ProgramStorage> storages_;
  std::vector<Event> events_;
  std::unordered_set<std::size_t> let_go_;  ///< tensors that escaped
  std::vector<std::int64_t> open_ops_;      ///< names, outermost first
  std::vector<std::int32_t> node_tensors_;  ///< unpacked since the last node's end
  /// Index in events_; nullopt: not reached since the last unpack.
  std::optional<std::size_t> node_part_end_;
};

}  // namespace offprof
