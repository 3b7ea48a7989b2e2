#pragma once

#include <cstdint>
#include <deque>
#include <memory>
#include <optional>
#include <vector>

#include "engine/scheduler/scheduler.h"

namespace offprof {

/// Follows the rules of TRL's `OffloadActivations(use_pin_memory=True, use_streams=True)`, so that its
/// behaviour can be measured and predicted:
///
/// - A tensor that a rule places on the device gets no id and stays there. TRL's trainers treat the tensors
///   of the output head in this way. Rules with other placements are ignored.
/// - Every other saved tensor gets an id. Each tensor of at least `threshold_bytes` is offloaded by itself,
///   unless it is a parameter. This includes views of one storage, transposed parameters and buffers.
/// - Forward stash: before an offload, entries whose id is at most `id - stash_count` are waited for and
///   dropped, oldest first. Ids count small tensors too, so the stash holds fewer than `stash_count` entries
///   if small tensors lie between.
/// - One side stream carries both directions. Tensors are reloaded on demand.
/// - A tensor that is still stashed when backward unpacks it comes from the stash. The first node that has
///   unpacked an offloaded tensor empties the stash when it ends.
/// - Backward stash: a reloaded tensor is held until the next node that unpacks an offloaded tensor has
///   ended. If its memory is used beyond its own node, it is dropped when that node ends (the use-count
///   rule).
///
/// A tensor that backward saves again after it unpacked it (Movability::kUnpacked) stays; TRL would offload
/// it.
///
/// If backward never unpacks a tensor, TRL raises an error at the next forward; this scheduler releases the
/// tensor when autograd does. If the device has no memory for a reload, TRL keeps its stash and the step
/// fails; so it does here.
class TrlScheduler final : public Scheduler {
 public:
  TrlScheduler(const Policy& policy, Executor& executor);

  PackDecision pack(SavedId tensor, const PackRequest& request, const RuledPlacement& rule) override;
  using Scheduler::pack;
  void unpack(SavedId tensor) override;
  void release(SavedId tensor) override;
  void node_end(std::span<const SavedId> tensors, std::span<const SavedId> escaped) override;
  void backward_end() override;
  bool needs_node_ends() const override { return true; }
  std::unique_ptr<Scheduler> clone(const Policy& policy, Executor& executor) const override;

 private:
  /// State of a saved tensor in TRL's tracker and its two stashes.
  struct Entry {
    std::int64_t id = -1;  ///< TRL's; -1: a rule keeps the tensor
    CopyId copy = -1;      ///< -1: kept
    Bytes bytes = 0;
    bool tracked = true;  ///< not unpacked yet
    bool in_forward_stash = false;
    bool in_backward_stash = false;
  };

  void take_limits(const Policy& policy);
  bool offloads(const PackRequest& request) const;
  PlacementReason reason_to_keep(const PackRequest& request) const;
  void drop_from_forward_stash();
  void drop_from_backward_stash(SavedId tensor);
  template <typename EachCommand>
  void issue(SavedId tensor);

  Bytes threshold_bytes_ = 0;
  bool offloads_any_ = false;
  std::int64_t stash_count_ = 0;
  Executor* executor_;
  std::vector<Entry> entries_;  ///< by saved tensor
  std::int64_t next_id_ = 0;
  CopyId next_copy_ = 0;
  std::deque<SavedId> forward_stash_;    ///< oldest first
  std::vector<SavedId> backward_stash_;  ///< in the order in which they were reloaded
  bool node_open_ = false;               ///< an offloaded tensor was unpacked since the last node_end
  std::vector<SavedId> previous_node_;   ///< to drop when the open node ends
};

}  // namespace offprof
