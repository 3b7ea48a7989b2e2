// The part of OffloadStep that discards saved tensors and recomputes them.
#include <set>
#include <utility>

#include "engine/autograd/offload_step.h"
#include "traces/base/check.h"

namespace offprof {

/// Records the contents that the recompute steps read: they must not change from here on.
void OffloadStep::discard(const Command& command) {
  OFFPROF_CHECK(rule_recipe_ != nullptr);
  const auto found = guide_.recipes.find(rule_recipe_->tensor);
  OFFPROF_CHECK(found != guide_.recipes.end());
  Remake remake = {command.tensor, found->second, {}};
  for (const RecipeStep& step : remake.recipe->steps)
    for (const RecipeArgument& argument : step.arguments)
      if (auto source = watched(argument)) remake.sources.push_back(std::move(*source));
  copies_.discard(command);
  remakes_.emplace(command.copy, std::move(remake));
}

std::optional<WatchedContent> OffloadStep::watched(const RecipeArgument& argument) const {
  if (argument.source >= 0) {
    const Saved& source = saved_[argument.source];
    return WatchedContent{source.counter, source.version};
  }
  if (!argument.value.isTensor()) return std::nullopt;
  const at::Tensor& resident = argument.value.toTensor();
  return WatchedContent{resident.unsafeGetTensorImpl()->version_counter(), version_of(resident)};
}

/// Returns the draws that the policy's recompute steps repeat; nullopt: none.
std::optional<RandomDraws> OffloadStep::draws_for(const StepGuide& guide, c10::Device device) {
  std::set<std::size_t> kept;
  for (const RuledPlacement& placement : guide.placements) {
    if (!placement || placement->recipe == nullptr) continue;
    const auto found = guide.recipes.find(placement->recipe->tensor);
    if (found == guide.recipes.end()) continue;
    for (const RecipeStep& step : found->second->steps)
      if (step.draw) kept.insert(*step.draw);
  }
  if (kept.empty()) return std::nullopt;
  return RandomDraws(device, std::move(kept));
}

void OffloadStep::draw(const std::string& op) {
  const std::lock_guard lock(mutex_);
  if (draws_ && !is_backward_) draws_->add({op, static_cast<SavedId>(saved_.size())});
}

c10::Storage OffloadStep::remade(const Command& command) const {
  const Remake& remake = remakes_.at(command.copy);
  for (const WatchedContent& source : remake.sources)
    TORCH_CHECK(source.is_unchanged(), "saved tensor ", remake.tensor, " cannot be made again by ",
                remake.recipe->name(),
                ": what it is made of has been modified by an inplace operation since (version ",
                source.counter.current_version(), "; expected version ", source.version,
                "). Give it another placement than recompute.");
  TORCH_CHECK(remake.recipe->draws == nullptr || (draws_ && draws_->list() == *remake.recipe->draws),
              "saved tensor ", remake.tensor, " cannot be made again by ", remake.recipe->name(),
              ": the step drew other random numbers than the recorded one. Give it another placement than "
              "recompute.");
  const c10::Storage storage =
      offprof::remake(*remake.recipe,
                      {[&](SavedId tensor) { return storage_of(tensor); },
                       [&](std::size_t draw) -> const RngState& { return draws_->state_before(draw); }})
          .storage();
  TORCH_CHECK(static_cast<Bytes>(storage.nbytes()) == command.bytes, "saved tensor ", remake.tensor, ": ",
              remake.recipe->name(), " made ", storage.nbytes(), " bytes where ", command.bytes,
              " were expected: the step is not the one that was recorded");
  return storage;
}

/// Returns the storage of a source tensor. The scheduler has brought it to the device.
c10::Storage OffloadStep::storage_of(SavedId tensor) const {
  const Saved& saved = saved_[tensor];
  return saved.copy >= 0 ? copies_[saved.copy].device_storage : saved.shell->storage();
}

}  // namespace offprof
