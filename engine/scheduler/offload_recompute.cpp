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
  Copy copy = {tensor, request.storage_bytes, request.storage_bytes, 0, placement.place, 1};
  copy.on_device = copy.out_pending = false;
  copy.recomputation = &recomputation;
  const CopyId id = add_copy(tensor, request, copy);
  executor_->execute(DropForRecompute{fields_of(id), recomputation.tensor});
  return {placement.place, placement.reason, id};
}

/// True if all saved tensors that the recipe takes are still there, so that they can be held until it runs.
bool OffloadScheduler::are_held(const Recomputation& recomputation) const {
  return std::ranges::all_of(recomputation.sources, [&](SavedId source) {
    OFFPROF_CHECK(source + 1 < static_cast<SavedId>(copy_of_.size()));
    return (copy_of_[source] == kKept ? kept_users_[source] : copies_[copy_of_[source]].users) > 0;
  });
}

void OffloadScheduler::recompute(CopyId id) {
  for (const SavedId source : copies_[id].recomputation->sources)
    if (copy_of_[source] != kKept) make_ready(copy_of_[source]);
  make_room_for(Recompute{fields_of(id)});
  copies_[id].on_device = true;
  release_sources(id);
}

/// Releases the sources of a copy. The copy has been recomputed, or nobody will unpack it.
void OffloadScheduler::release_sources(CopyId id) {
  const Recomputation* recomputation = std::exchange(copies_[id].recomputation, nullptr);
  if (recomputation == nullptr) return;
  for (const SavedId source : recomputation->sources) release_kept(source);
}

/// Returns the copy itself, or for a copy with a recipe the first source that is not on the device; kKept if
/// nothing is to be copied in for it.
CopyId OffloadScheduler::reloadable_copy(CopyId id) const {
  const Copy& copy = copies_[id];
  if (copy.recomputation == nullptr) return copy.on_device ? kKept : id;
  for (const SavedId source : copy.recomputation->sources) {
    if (copy_of_[source] == kKept) continue;
    const CopyId needed = reloadable_copy(copy_of_[source]);
    if (needed != kKept) return needed;
  }
  return kKept;
}

}  // namespace offprof
