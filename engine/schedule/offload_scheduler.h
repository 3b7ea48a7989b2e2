#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/schedule/copy_index.h"
#include "engine/schedule/disk_window.h"
#include "engine/schedule/scheduler.h"

namespace offprof {

/// offprof's own rules.
///
/// A movable saved tensor whose storage has at least `threshold_bytes`, and which the plan names where there
/// is one, is offloaded. There is one copy of each storage version: the saved tensors that view it share it,
/// named or not, and it lives until autograd has released the last of them.
///
/// Forward: a new copy out joins the stash, whose entries keep their device storage. Where it would hold more
/// than `stash_count` entries or `stash_bytes`, its oldest entries are waited for and dropped first. A copy
/// that no stash holds is waited for and dropped at once.
///
/// Backward: a copy whose device storage was dropped is copied in when first asked for, and then stays until
/// its last release. After each request the copies that the backward order needs next are copied in too, as
/// long as those not asked for yet hold at most `prefetch_bytes`.
///
/// Where the device has no memory for a copy in, memory is short for the rest of the step: no copy is copied
/// in ahead any more, and those that came ahead are waited for and dropped, since operators need memory as
/// well. The copy in comes when it is asked for. If it has been asked for, the stash is waited for and
/// dropped too, and it is tried once more; then the device's refusal is the step's error.
///
/// `host_memory_bytes`: a tensor whose copy would exceed it is kept.
///
/// Disk, and what compresses in its place: such a copy goes out to host memory and from there to the disk,
/// and comes back by the same way, of which DiskWindow decides; where `disk_memory_bytes` or the disk itself
/// has no room for it, it stays in host memory, and where that has none, on the device.
///
/// Rules: what they make of a tensor stands instead of threshold and plan. Where it is
/// packed, the packed storage is the copy's: it goes out, joins the stash and comes back, and is unpacked
/// when it is first asked for; on the device it waits as it is. Then it is as any copy that has come back.
///
/// Recompute: what is to be made again is dropped, and what its recipe takes of other saved tensors is held
/// for it as if it were one more tensor of theirs, until it is made. When it is first asked for they are
/// brought back, made again themselves where that is their placement, and then it is made; prefetch brings
/// back what it needs. Where one of them is gone already when it is saved, it is kept.
class OffloadScheduler final : public Scheduler {
 public:
  OffloadScheduler(Policy policy, std::span<const SavedId> backward_order, Executor& executor)
      : policy_(std::move(policy)),
        executor_(&executor),
        backward_order_(backward_order),
        window_(policy_.disk_buffer_bytes) {}

  PackDecision pack(SavedId tensor, const PackRequest& request, const RuledPlacement& rule) override;
  using Scheduler::pack;
  void unpack(SavedId tensor) override;
  void release(SavedId tensor) override;
  void node_end(std::span<const SavedId>, std::span<const SavedId>) override {}
  void backward_end() override {}
  bool needs_node_ends() const override { return false; }
  std::unique_ptr<Scheduler> clone(const Policy& policy, Executor& executor) const override;

 private:
  struct Copy {
    SavedId first_tensor = -1;
    Bytes bytes = 0;        ///< of what is copied: of the packed storage, where it is packed
    Bytes held_bytes = 0;   ///< of its device storage, while it has one
    Bytes packed_from = 0;  ///< while it is packed, the bytes of its storage; else 0
    Place place = Place::kHost;
    int users = 0;            ///< saved tensors not released yet
    bool on_device = true;    ///< the executor holds a device storage for it
    bool out_pending = true;  ///< nobody has waited for the copy out
    bool in_pending = false;  ///< nobody has waited for the copy in
    bool stashed = false;
    bool ahead = false;              ///< copied in, but not asked for yet
    const Recipe* recipe = nullptr;  ///< by which it is made when it is asked for; nullptr: its values exist
  };

  std::optional<PlacementReason> reason_to_keep(const PackRequest& request, const RuledPlacement& rule) const;
  bool is_planned(SavedId tensor);
  bool host_has_room(Bytes bytes) const;
  std::optional<TensorPlacement> place_with_room(TensorPlacement placement, const Command& copy);
  bool take_disk(const Command& copy);
  PackDecision keep(SavedId tensor, const PackRequest& request, PlacementReason reason);
  PackDecision share(SavedId tensor, CopyId copy);
  PackDecision place(SavedId tensor, const PackRequest& request, const TensorPlacement& asked);
  CopyId add_copy(SavedId tensor, const PackRequest& request, const Copy& copy);
  void send_out(CopyId id, bool stashable);
  bool stash_has_room(Bytes bytes) const;
  bool stash_could_hold(Bytes bytes) const;
  CopyId oldest_stashed();
  void unstash(CopyId id);
  void wait_and_drop(CopyId id);
  void copy_in(CopyId id);
  void wait_in(CopyId id);
  void decode(CopyId id);
  void make_room_for(const Command& command);
  void ask_for(CopyId id);
  void make_ready(CopyId id);
  void let_go(SavedId tensor);

  PackDecision discard(SavedId tensor, const PackRequest& request, const TensorPlacement& placement);
  bool are_held(const Recipe& recipe) const;
  void remake(CopyId id);
  void let_go_of_sources(CopyId id);
  bool copy_in_ahead(CopyId id);
  void drop_all_that(bool Copy::*are);
  void begin_backward();
  std::span<const SavedId> order() const;
  void prefetch_after(SavedId tensor);
  void copy_in_next();
  void read_next();
  CopyId reloadable_copy_of(SavedId tensor) const;
  CopyId reloadable_copy(CopyId id) const;
  void free(CopyId id);
  bool is_on_disk(CopyId id) const { return takes_disk(copies_[id].place); }
  void command(CommandKind kind, CopyId id) { executor_->execute(command_of(kind, id)); }
  Command command_of(CommandKind kind, CopyId id) const {
    return {kind, copies_[id].first_tensor, id, copies_[id].bytes};
  }
  Command decode_command(CopyId id) const {
    return {CommandKind::kDecode, copies_[id].first_tensor, id, copies_[id].packed_from};
  }

  static constexpr CopyId kKept = CopyIndex::kNone;

  Policy policy_;
  Executor* executor_;
  std::span<const SavedId> backward_order_;
  std::vector<SavedId> reverse_order_;  ///< serves where no order was recorded
  std::size_t next_planned_ = 0;  ///< in the plan: the first that is not below the last tensor looked up
  std::vector<std::int32_t>
      order_position_;  ///< by saved tensor; -1: not in the order; made at the first unpack
  std::size_t next_in_order_ = 0;
  std::size_t next_to_read_ = 0;   ///< likewise, of what comes from the disk
  std::vector<CopyId> copy_of_;    ///< by saved tensor; kKept
  std::vector<Bytes> kept_bytes_;  ///< by saved tensor; 0 where not kept
  std::vector<int> kept_users_;    ///< by saved tensor: autograd, and what is made again of it
  std::vector<Copy> copies_;
  CopyIndex live_copies_;
  CopyId first_stashed_ = 0;  ///< no copy before it is in the stash, which copies join in their order
  std::int64_t stash_count_ = 0;
  Bytes stash_bytes_ = 0;
  Bytes ahead_bytes_ = 0;
  bool memory_is_short_ = false;  ///< the device has refused a copy in
  Bytes host_bytes_ = 0;
  Bytes disk_bytes_ = 0;
  DiskWindow window_;
};

}  // namespace offprof
