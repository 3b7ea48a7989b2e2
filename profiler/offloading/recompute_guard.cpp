#include "profiler/offloading/recompute_guard.h"

#include <algorithm>
#include <utility>

#include "engine/autograd/held_tensor.h"

namespace offprof {

KnownRecomputations::KnownRecomputations(std::vector<FoundRecomputation> found) {
  for (FoundRecomputation& one : found) {
    // The guard compares the draws, each when a tensor that depends on it is saved.
    one.executable.draws = nullptr;
    texts_.emplace(one.recomputation.tensor, text_of_steps(one));
    executable_.emplace(one.recomputation.tensor,
                        std::make_shared<const ExecutableRecomputation>(std::move(one.executable)));
  }
}

const std::string* KnownRecomputations::text_for(SavedId tensor) const {
  const auto found = texts_.find(tensor);
  return found == texts_.end() ? nullptr : &found->second;
}

RecomputeGuard::RecomputeGuard(Device& device, std::shared_ptr<const Residents> residents,
                               std::shared_ptr<const KnownRecomputations> known)
    : device_(device),
      residents_(std::move(residents)),
      known_(std::move(known)),
      notes_(std::make_unique<OperatorNotes>(device_, *residents_)) {}

bool RecomputeGuard::allows(const Recomputation& recomputation, SavedId tensor, const at::Tensor& value,
                            const PackRequest& request) {
  const SavedId first = recomputation.tensor;
  const bool is_known_content = first == tensor || (first < tensor && is_same_content(first, request));
  if (const auto verdict = verdicts_.find(first); verdict != verdicts_.end())
    return verdict->second && is_known_content;
  return verdicts_[first] = is_known_content && is_made_as_known(first, value);
}

bool RecomputeGuard::is_same_content(SavedId first, const PackRequest& request) const {
  const Saved& saved = saved_[static_cast<std::size_t>(first)];
  return saved.storage == request.storage && saved.version == request.version;
}

/// Returns true if an operator of this step made the tensor like that of the observed steps: one that has
/// ended, or one that runs and saves its own result.
bool RecomputeGuard::is_made_as_known(SavedId tensor, const at::Tensor& value) {
  const std::string* const known = known_->text_for(tensor);
  if (known == nullptr || !notes_) return false;
  const auto matches = [&](const NotedResult& made) {
    RecomputeBuilder builder(tensor, [&](const NotedArgument& argument) { return source_of(argument); });
    const auto found = builder.build(made);
    return found && text_of_steps(*found) == *known;
  };
  const AllocationId allocation = device_.allocation_of(value.storage()).value_or(0);
  const NotedResult* const made = notes_->maker_of(allocation, content_of(value));
  if (made != nullptr && matches(*made)) return true;
  const std::size_t output = known_->executable().at(tensor)->steps.back().output;
  return std::ranges::any_of(notes_->results_to_come(value, output), matches);
}

/// Returns the first saved tensor with the argument's content; -1: there is none.
SavedId RecomputeGuard::source_of(const NotedArgument& argument) const {
  if (!argument.content.is_unchanged()) return -1;
  const auto found = std::ranges::find_if(saved_, [&](const Saved& saved) {
    return saved.storage == argument.allocation && saved.content &&
           offprof::is_same_content(*saved.content, argument.content);
  });
  return found == saved_.end() ? -1 : static_cast<SavedId>(found - saved_.begin());
}

void RecomputeGuard::add(const at::Tensor& value, const PackRequest& request) {
  Saved& saved = saved_.emplace_back(Saved{request.storage, request.version});
  if (!notes_) return;
  notes_->add_saved(value);
  if (request.movability == Movability::kMovable || request.movability == Movability::kInput)
    saved.content = content_of(value);
}

void RecomputeGuard::end_forward() {
  if (notes_) notes_->stop();
}

void RecomputeGuard::end_step() {
  if (!notes_) return;
  notes_->stop();
  draws_ = notes_->draws();
  notes_.reset();
}

const RngState& RecomputeGuard::state_before(std::size_t draw) const {
  return notes_ ? notes_->draws().state_before(draw) : draws_->state_before(draw);
}

}  // namespace offprof
