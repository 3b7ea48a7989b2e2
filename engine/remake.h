#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/random_draws.h"
#include "engine/schedule/scheduler.h"

namespace offprof {

/// A tensor but for its values: how it views a storage.
struct StorageView {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;  ///< in elements

  bool operator==(const StorageView&) const = default;
};

StorageView view_of(const at::Tensor& value);
/// Without a copy, nor memory of its own.
at::Tensor view_storage(const c10::Storage& storage, const StorageView& view);

/// What an operator is given in one place.
struct RecipeArgument {
  /// Where it is neither of these: itself. A tensor is then one that is older than the step, and stays.
  c10::IValue value{};
  SavedId source = -1;     ///< the saved tensor whose storage it views
  std::int32_t step = -1;  ///< the step of the recipe before, whose result's storage it views
  StorageView view{};      ///< of that storage
};

/// One operator that a recipe runs.
struct RecipeStep {
  c10::OperatorHandle op;
  std::vector<RecipeArgument> arguments;
  std::size_t output = 0;             ///< which of the operator's results is wanted
  StorageView view;                   ///< as which it comes, all of its storage
  std::optional<std::size_t> draw{};  ///< of RandomDraws: where the generators must stand
};

/// A Recipe, ready to be carried out.
struct ExecutableRecipe {
  std::vector<RecipeStep> steps;  ///< at least one; the last one's result is what is made
  /// What the step must have drawn until its backward began; nullptr: nothing is drawn again.
  std::shared_ptr<const std::vector<Draw>> draws{};

  /// `aten::rsqrt, aten::mul`
  std::string name() const;
};

/// What a recipe is carried out with.
struct RecipeInputs {
  std::function<c10::Storage(SavedId)> storage_of;                ///< of its sources
  std::function<const RngState&(std::size_t draw)> state_before;  ///< see RandomDraws
};

/// Runs the operators, without history; what comes of the last. What they draw leaves the generators where
/// they stood. Throws what an operator throws, c10::OutOfMemoryError too, and c10::Error where a result is
/// laid out otherwise.
at::Tensor remake(const ExecutableRecipe& recipe, const RecipeInputs& inputs);

/// That a tensor's content is what it was: autograd's version counter, and what it said.
struct WatchedContent {
  c10::VariableVersion counter;
  std::uint32_t version = 0;

  bool is_unchanged() const { return !counter.enabled() || counter.current_version() == version; }
};

/// Whether two tensors count together. LibTorch does not tell; but what it hands out is one pointer to the
/// counter.
bool is_same_counter(const c10::VariableVersion& a, const c10::VariableVersion& b);

/// The number of changes in place that the tensor's content has seen; 0 where nobody counts them.
std::uint32_t version_of(const at::Tensor& value);

}  // namespace offprof
