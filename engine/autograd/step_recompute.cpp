#include "engine/autograd/step_recompute.h"

#include <c10/util/Exception.h>

#include <set>
#include <utility>

#include "traces/base/check.h"

namespace offprof {
namespace {

/// Returns the draws that the policy's recompute steps repeat; nullopt: none, or the guide keeps them.
std::optional<RandomDraws> draws_for(const StepGuide& guide, c10::Device device) {
  if (guide.state_before) return std::nullopt;
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

}  // namespace

StepRecompute::StepRecompute(const StepGuide& guide, c10::Device device, const std::vector<HeldTensor>& held,
                             const StepCopies& copies)
    : guide_(guide), held_(held), copies_(copies), draws_(draws_for(guide, device)) {}

void StepRecompute::draw(const std::string& op) {
  if (draws_ && is_forward_) draws_->add({op, static_cast<SavedId>(held_.size())});
}

bool StepRecompute::end_forward() {
  const bool was_forward = std::exchange(is_forward_, false);
  if (was_forward && guide_.on_forward_end) guide_.on_forward_end();
  return was_forward;
}

void StepRecompute::drop(const DropForRecompute& command) {
  const auto found = guide_.recomputations.find(command.recomputation);
  OFFPROF_CHECK(found != guide_.recomputations.end());
  Dropped dropped = {found->second, {}};
  for (const RecomputeStep& step : dropped.recomputation->steps)
    for (const RecomputeArgument& argument : step.arguments)
      if (argument.source >= 0 || argument.value.isTensor()) dropped.sources.push_back(content_of(argument));
  dropped_.emplace(command.copy, std::move(dropped));
}

/// Returns the content of a saved tensor or of a resident that a recompute step reads.
WatchedContent StepRecompute::content_of(const RecomputeArgument& argument) const {
  if (argument.source >= 0) return {held_[argument.source].counter, held_[argument.source].version};
  const at::Tensor& resident = argument.value.toTensor();
  return {resident.unsafeGetTensorImpl()->version_counter(), version_of(resident)};
}

c10::Storage StepRecompute::recompute(const Recompute& command) const {
  const Dropped& dropped = dropped_.at(command.copy);
  check_sources(command, dropped);
  check_draws(command, dropped);
  const RecomputeInputs inputs = {[&](SavedId tensor) { return storage_of(tensor); },
                                  [&](std::size_t draw) -> const RngState& {
                                    return guide_.state_before ? guide_.state_before(draw)
                                                               : draws_->state_before(draw);
                                  }};
  const c10::Storage storage = offprof::recompute(*dropped.recomputation, inputs).storage();
  TORCH_CHECK(static_cast<Bytes>(storage.nbytes()) == command.bytes, "saved tensor ", command.tensor, ": ",
              dropped.recomputation->name(), " produced ", storage.nbytes(), " bytes instead of ",
              command.bytes, ": this step differs from the recorded step");
  return storage;
}

void StepRecompute::check_sources(const Recompute& command, const Dropped& dropped) const {
  for (const WatchedContent& source : dropped.sources)
    TORCH_CHECK(source.is_unchanged(), "saved tensor ", command.tensor, " cannot be recomputed by ",
                dropped.recomputation->name(),
                ": its source has been modified by an inplace operation since it was saved (version ",
                source.counter.current_version(), "; expected version ", source.version,
                "). Give the tensor a placement other than recompute.");
}

void StepRecompute::check_draws(const Recompute& command, const Dropped& dropped) const {
  const std::vector<Draw>* const recorded = dropped.recomputation->draws.get();
  TORCH_CHECK(recorded == nullptr || (draws_ && draws_->list() == *recorded), "saved tensor ", command.tensor,
              " cannot be recomputed by ", dropped.recomputation->name(),
              ": this step drew different random numbers than the recorded step. Give the tensor a placement "
              "other than recompute.");
}

/// Returns the storage of a source tensor. The scheduler has brought it to the device.
c10::Storage StepRecompute::storage_of(SavedId tensor) const {
  const HeldTensor& held = held_[tensor];
  return held.copy >= 0 ? copies_[held.copy].device_storage : held.shell->storage();
}

}  // namespace offprof
