// What of OffloadStep drops saved tensors and makes them again.
#include <utility>

#include "engine/offload_step.h"
#include "traces/check.h"

namespace offprof {

/// From here on no content of what it takes may change.
void OffloadStep::discard(const Command& command) {
  OFFPROF_CHECK(rule_recipe_ != nullptr);
  const auto found = guide_.recipes.find(rule_recipe_->tensor);
  OFFPROF_CHECK(found != guide_.recipes.end());
  Remake remake = {command.tensor, found->second, {}};
  for (const RecipeArgument& argument : remake.recipe->arguments) {
    if (argument.source >= 0) {
      const Saved& source = saved_[argument.source];
      remake.sources.push_back({source.counter, source.version});
    } else if (argument.value.isTensor()) {
      const at::Tensor& resident = argument.value.toTensor();
      remake.sources.push_back({resident.unsafeGetTensorImpl()->version_counter(), version_of(resident)});
    }
  }
  copies_.discard(command);
  remakes_.emplace(command.copy, std::move(remake));
}

c10::Storage OffloadStep::remade(const Command& command) const {
  const Remake& remake = remakes_.at(command.copy);
  for (const WatchedContent& source : remake.sources)
    TORCH_CHECK(source.is_unchanged(), "saved tensor ", remake.tensor, " cannot be made again by ",
                remake.recipe->op.schema().name(),
                ": what it is made of has been modified by an inplace operation since (version ",
                source.counter.current_version(), "; expected version ", source.version,
                "). Give it another placement than recompute.");
  const c10::Storage storage =
      offprof::remake(*remake.recipe, [&](SavedId tensor) { return storage_of(tensor); }).storage();
  TORCH_CHECK(static_cast<Bytes>(storage.nbytes()) == command.bytes, "saved tensor ", remake.tensor, ": ",
              remake.recipe->op.schema().name(), " made ", storage.nbytes(), " bytes where ", command.bytes,
              " were expected: the step is not the one that was recorded");
  return storage;
}

/// The scheduler has seen to it that it is there.
c10::Storage OffloadStep::storage_of(SavedId tensor) const {
  const Saved& saved = saved_[tensor];
  return saved.copy >= 0 ? copies_[saved.copy].device_storage : saved.shell->storage();
}

}  // namespace offprof
