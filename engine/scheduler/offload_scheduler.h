#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/scheduler/copy_index.h"
#include "engine/scheduler/disk_window.h"
#include "engine/scheduler/scheduler.h"

namespace offprof {

/// Applies offprof's own offload rules.
///
/// A movable saved tensor is offloaded if its storage has at least `threshold_bytes` and the plan, if there
/// is one, names the tensor. There is one copy of each storage version: the saved tensors that view it share
/// it, named or not, and it lives until autograd has released the last of them.
///
/// Forward: a new copy out joins the stash, whose entries keep their device storage. If the stash would hold
/// more than `stash_count` entries or `stash_bytes`, its oldest entries are waited for and dropped first. A
/// copy that can fit no stash is waited for and dropped at once.
///
/// Backward: a copy whose device storage was dropped is copied in when it is first unpacked, and then stays
/// until its last release. After each unpack, the copies that the backward order needs next are copied in
/// too, as long as the copies that are not unpacked yet hold at most `prefetch_bytes`.
///
/// If the device has no memory for a copy in, memory is short for the rest of the step: prefetch ends, and
/// the copies that were prefetched are waited for and dropped, because operators need memory as well. The
/// refused copy in is made when its tensor is unpacked. If it is refused at an unpack, the stash is waited
/// for and dropped too, and the copy in is tried once more; a second refusal is the error of the step.
///
/// `host_memory_bytes`: a tensor whose copy would exceed this limit is kept on the device. Copies of older
/// steps whose graphs still exist count as well.
///
/// Disk, and the compressed tier in its place: the copy goes out to host memory and from there to the disk,
/// and comes back the same way, as DiskWindow decides. If `disk_memory_bytes` or the disk itself has no room
/// for the copy, it stays in host memory; if host memory has no room either, the tensor stays on the device.
///
/// Rules: the placement that a rule gives a tensor replaces threshold and plan. If the rule encodes the
/// tensor, the copy's storage is the encoded storage: it goes out, joins the stash and comes back, and is
/// decoded when the tensor is first unpacked. An encoded tensor that stays on the device waits there in its
/// encoded form. After decoding it is like any copy that has come back.
///
/// Recompute: a tensor that is to be recomputed is dropped. Each saved tensor that its recomputation reads is
/// held, as if by one more saved tensor, until the recomputation. At the first unpack these sources are
/// brought back (or recomputed first, if that is their placement), and then the tensor is recomputed.
/// Prefetch brings the sources back. If one of the sources is already gone when the tensor is saved, the
/// tensor is kept.
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
  bool starts_alike(const Policy& other) const override;
  bool packs_alike(SavedId tensor, const PackRequest& request, const RuledPlacement& rule,
                   const Policy& other) const override;
  bool unpacks_alike(const Policy& other) const override {
    return other.prefetch_bytes == policy_.prefetch_bytes;
  }
  std::optional<LimitRanges> limit_ranges() const override { return limit_ranges_; }

 private:
  /// State of a copy. Forward ends in kStashed or kAway, backward leads from there to kOnDevice or kDecoded.
  enum class State : std::uint8_t {
    kGoingOut,     ///< on the device; nobody has waited for its copy out
    kStashed,      ///< like kGoingOut; dropped when the stash or the device needs its memory
    kAway,         ///< not on the device
    kAhead,        ///< like kComingIn, but not unpacked yet: dropped when the device needs its memory
    kComingIn,     ///< on the device; nobody has waited for its copy in
    kOnDevice,     ///< on the device; no copy of it is in progress
    kDecoded,      ///< like kOnDevice, and decoded
    kToRecompute,  ///< dropped: it has no values until it is recomputed
    kFreed,        ///< its last tensor has been released
  };

  struct Copy {
    SavedId first_tensor = -1;
    int users = 0;            ///< saved tensors not released yet
    Bytes bytes = 0;          ///< size of the copied storage: the encoded one, if a transform encodes it
    Bytes decoded_bytes = 0;  ///< size of the storage that a transform encodes; 0: none does
    Place place = Place::kHost;
    State state = State::kGoingOut;
    const Recomputation* recomputation = nullptr;  ///< leads from kToRecompute to kOnDevice

    bool is_on_device() const {
      return state != State::kAway && state != State::kToRecompute && state != State::kFreed;
    }
    bool is_encoded() const { return decoded_bytes > 0 && state != State::kDecoded; }
    Bytes device_bytes() const { return state == State::kDecoded ? decoded_bytes : bytes; }
  };

  bool host_has_room(Bytes bytes) const;
  std::optional<ResolvedPlacement> place_with_room(ResolvedPlacement placement, const CopyCommand& copy);
  bool take_disk(const CopyCommand& copy);
  PackDecision keep(SavedId tensor, const PackRequest& request, PlacementReason reason);
  PackDecision share(SavedId tensor, CopyId copy);
  PackDecision place(SavedId tensor, const PackRequest& request, const ResolvedPlacement& asked);
  CopyId add_copy(SavedId tensor, const PackRequest& request, const Copy& copy);
  void send_out(CopyId id, bool stashable);
  bool make_stash_room(Bytes bytes);
  void note_refusal(std::int64_t count, Bytes bytes);
  CopyId oldest_stashed();
  void claim(CopyId id);
  void wait_and_drop(CopyId id);
  void copy_in(CopyId id);
  void wait_out(CopyId id);
  void wait_in(CopyId id);
  void decode(CopyId id);
  void make_room_for(const RefusableCommand& command);
  void ask_for(CopyId id);
  void make_ready(CopyId id);
  void release_kept(SavedId tensor);

  PackDecision discard(SavedId tensor, const PackRequest& request, const ResolvedPlacement& placement);
  bool are_held(const Recomputation& recomputation) const;
  void recompute(CopyId id);
  void release_sources(const Recomputation& recomputation);
  bool copy_in_ahead(CopyId id);
  void drop_all(State state);
  void begin_backward();
  std::span<const SavedId> order() const;
  void prefetch_after(SavedId tensor);
  void copy_in_next();
  void read_next();
  CopyId reloadable_copy_of(SavedId tensor) const;
  CopyId reloadable_copy(CopyId id) const;
  void free(CopyId id);
  bool is_on_disk(CopyId id) const { return takes_disk(copies_[id].place); }
  template <typename EachCommand>
  void issue(CopyId id) {
    executor_->execute(EachCommand{fields_of(id)});
  }
  CopyCommand fields_of(CopyId id) const { return {copies_[id].first_tensor, id, copies_[id].bytes}; }

  static constexpr CopyId kKept = CopyIndex::kNone;

  Policy policy_;
  Executor* executor_;
  std::span<const SavedId> backward_order_;
  std::vector<SavedId> reverse_order_;  ///< used if no order was recorded
  /// By saved tensor; -1: not in the order. Built at the first unpack.
  std::vector<std::int32_t> order_position_;
  std::size_t next_in_order_ = 0;
  std::size_t next_to_read_ = 0;   ///< like next_in_order_, for copies on the disk
  std::vector<CopyId> copy_of_;    ///< by saved tensor; kKept: kept on the device
  std::vector<Bytes> kept_bytes_;  ///< by saved tensor; 0 if not kept
  std::vector<int> kept_users_;    ///< by saved tensor: autograd, and the tensors to be recomputed from it
  std::vector<Copy> copies_;
  Bytes smallest_copy_bytes_ = LimitRange::kNoEnd;  ///< at least 1
  CopyIndex live_copies_;
  /// No copy before it is in the stash. Copies join the stash in the order of their numbers.
  CopyId first_stashed_ = 0;
  std::int64_t stash_count_ = 0;
  Bytes stash_bytes_ = 0;
  Bytes ahead_bytes_ = 0;
  bool memory_is_short_ = false;  ///< the device has refused a copy in
  Bytes host_bytes_ = 0;
  Bytes disk_bytes_ = 0;
  DiskWindow window_;
  LimitRanges limit_ranges_;
};

}  // namespace offprof
