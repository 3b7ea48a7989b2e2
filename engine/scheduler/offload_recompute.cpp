// Recomputation of saved tensors: a part of OffloadScheduler.
#include <algorithm>
#include <utility>

#include "engine/scheduler/offload_scheduler.h"
#include "traces/base/check.h"

namespace offprof {

PackDecision OffloadScheduler::discard(SavedId tensor, const PackRequest& request,
                                       const ResolvedPlacement& placement) {
  OFFPROF_CHECK(placement.recomputation != nullptr);
  const Recomputation& recomputation = *placement.recomputation;
  if (!are_held(recomputation)) return keep(tensor, request, PlacementReason::kUnfitToRecompute);
  for (const SavedId source : recomputation.sources)
    ++(copy_of_[source] == kKept ? kept_users_[source] : copies_[copy_of_[source]].users);
  const CopyId id = add_copy(tensor, request,
                             {.first_tensor = tensor,
                              .users = 1,
                              .bytes = request.storage_bytes,
                              .place = placement.place,
                              .state = State::kToRecompute,
                              .recomputation = &recomputation});
  executor_->execute(DropForRecompute{fields_of(id), recomputation.tensor});
  return {placement.place, placement.reason, id};
}

/// True if all saved tensors that the recomputation reads are still there, so that they can be held until it
/// runs.
bool OffloadScheduler::are_held(const Recomputation& recomputation) const {
  return std::ranges::all_of(recomputation.sources, [&](SavedId source) {
    OFFPROF_CHECK(source + 1 < static_cast<SavedId>(copy_of_.size()));
    return (copy_of_[source] == kKept ? kept_users_[source] : copies_[copy_of_[source]].users) > 0;
  });
}

void OffloadScheduler::recompute(CopyId id) {
  const Recomputation& recomputation = *copies_[id].recomputation;
  for (const SavedId source : recomputation.sources)
    if (copy_of_[source] != kKept) make_ready(copy_of_[source]);
  make_room_for(Recompute{fields_of(id)});
  copies_[id].state = State::kOnDevice;
  release_sources(recomputation);
}

/// Releases the sources of a copy that has been recomputed, or that nobody will unpack.
void OffloadScheduler::release_sources(const Recomputation& recomputation) {
  for (const SavedId source : recomputation.sources) release_kept(source);
}

/// Returns the copy itself, or for a copy to recompute the first source that is not on the device; kKept if
/// nothing is to be copied in for it.
CopyId OffloadScheduler::reloadable_copy(CopyId id) const {
  const Copy& copy = copies_[id];
  if (copy.state != State::kToRecompute) return copy.state == State::kAway ? id : kKept;
  for (const SavedId source : copy.recomputation->sources) {
    if (copy_of_[source] == kKept) continue;
    const CopyId needed = reloadable_copy(copy_of_[source]);
    if (needed != kKept) return needed;
  }
  return kKept;
}

}  // namespace offprof
