// Recomputation of saved tensors: a part of OffloadScheduler.
#include <algorithm>
#include <utility>

#include "engine/scheduler/offload_scheduler.h"
#include "traces/base/check.h"

namespace offprof {

PackDecision OffloadScheduler::discard(SavedId tensor, const PackRequest& request,
                                       const TensorPlacement& placement) {
  OFFPROF_CHECK(placement.recipe != nullptr);
  const Recipe& recipe = *placement.recipe;
  if (!are_held(recipe)) return keep(tensor, request, PlacementReason::kUnfitToRecompute);
  for (const SavedId source : recipe.sources)
    ++(copy_of_[source] == kKept ? kept_users_[source] : copies_[copy_of_[source]].users);
  Copy copy = {tensor, request.storage_bytes, request.storage_bytes, 0, placement.place, 1};
  copy.on_device = copy.out_pending = false;
  copy.recipe = &recipe;
  const CopyId id = add_copy(tensor, request, copy);
  command(CommandKind::kDiscard, id);
  return {placement.place, placement.reason, id};
}

/// True if all saved tensors that the recipe takes are still there, so that they can be held until it runs.
bool OffloadScheduler::are_held(const Recipe& recipe) const {
  return std::ranges::all_of(recipe.sources, [&](SavedId source) {
    OFFPROF_CHECK(source + 1 < static_cast<SavedId>(copy_of_.size()));
    return (copy_of_[source] == kKept ? kept_users_[source] : copies_[copy_of_[source]].users) > 0;
  });
}

void OffloadScheduler::remake(CopyId id) {
  for (const SavedId source : copies_[id].recipe->sources)
    if (copy_of_[source] != kKept) make_ready(copy_of_[source]);
  make_room_for(command_of(CommandKind::kRemake, id));
  copies_[id].on_device = true;
  let_go_of_sources(id);
}

/// Releases the sources of a copy. The copy has been recomputed, or nobody will unpack it.
void OffloadScheduler::let_go_of_sources(CopyId id) {
  const Recipe* recipe = std::exchange(copies_[id].recipe, nullptr);
  if (recipe == nullptr) return;
  for (const SavedId source : recipe->sources) let_go(source);
}

/// Returns the copy itself, or for a copy with a recipe the first source that is not on the device; kKept if
/// nothing is to be copied in for it.
CopyId OffloadScheduler::reloadable_copy(CopyId id) const {
  const Copy& copy = copies_[id];
  if (copy.recipe == nullptr) return copy.on_device ? kKept : id;
  for (const SavedId source : copy.recipe->sources) {
    if (copy_of_[source] == kKept) continue;
    const CopyId needed = reloadable_copy(copy_of_[source]);
    if (needed != kKept) return needed;
  }
  return kKept;
}

}  // namespace offprof
