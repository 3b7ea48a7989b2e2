// The part of OffloadStep that discards saved tensors and recomputes them.
#include <set>
#include <utility>

#include "engine/autograd/offload_step.h"
#include "traces/base/check.h"

namespace offprof {

/// Records the contents that the recompute steps read: they must not change from here on.
void OffloadStep::run(const DropForRecompute& command) {
  const auto found = guide_.recomputations.find(command.recomputation);
  OFFPROF_CHECK(found != guide_.recomputations.end());
  PendingRecompute recompute = {command.tensor, found->second, {}};
  for (const RecomputeStep& step : recompute.recomputation->steps)
    for (const RecomputeArgument& argument : step.arguments)
      if (auto source = watched(argument)) recompute.sources.push_back(std::move(*source));
  copies_.run(command);
  recomputes_.emplace(command.copy, std::move(recompute));
}

std::optional<WatchedContent> OffloadStep::watched(const RecomputeArgument& argument) const {
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
    if (!placement || placement->recomputation == nullptr) continue;
    const auto found = guide.recomputations.find(placement->recomputation->tensor);
    if (found == guide.recomputations.end()) continue;
    for (const RecomputeStep& step : found->second->steps)
      if (step.draw) kept.insert(*step.draw);
  }
  if (kept.empty()) return std::nullopt;
  return RandomDraws(device, std::move(kept));
}

void OffloadStep::draw(const std::string& op) {
  const std::lock_guard lock(mutex_);
  if (draws_ && !is_backward_) draws_->add({op, static_cast<SavedId>(saved_.size())});
}

c10::Storage OffloadStep::recomputed(const Recompute& command) const {
  const PendingRecompute& recompute = recomputes_.at(command.copy);
  for (const WatchedContent& source : recompute.sources)
    TORCH_CHECK(source.is_unchanged(), "saved tensor ", recompute.tensor, " cannot be recomputed by ",
                recompute.recomputation->name(),
                ": its source has been modified by an inplace operation since it was saved (version ",
                source.counter.current_version(), "; expected version ", source.version,
                "). Give the tensor a placement other than recompute.");
  TORCH_CHECK(recompute.recomputation->draws == nullptr ||
                  (draws_ && draws_->list() == *recompute.recomputation->draws),
              "saved tensor ", recompute.tensor, " cannot be recomputed by ", recompute.recomputation->name(),
              ": this step drew different random numbers than the recorded step. Give the tensor a placement "
              "other than "
              "recompute.");
  const c10::Storage storage =
      offprof::recompute(*recompute.recomputation,
                         {[&](SavedId tensor) { return storage_of(tensor); },
                          [&](std::size_t draw) -> const RngState& { return draws_->state_before(draw); }})
          .storage();
  TORCH_CHECK(static_cast<Bytes>(storage.nbytes()) == command.bytes, "saved tensor ", recompute.tensor, ": ",
              recompute.recomputation->name(), " produced ", storage.nbytes(), " bytes instead of ",
              command.bytes, ": this step differs from the recorded step");
  return storage;
}

/// Returns the storage of a source tensor. The scheduler has brought it to the device.
c10::Storage OffloadStep::storage_of(SavedId tensor) const {
  const Saved& saved = saved_[tensor];
  return saved.copy >= 0 ? copies_[saved.copy].device_storage : saved.shell->storage();
}

}  // namespace offprof
