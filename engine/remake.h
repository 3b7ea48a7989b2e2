#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Storage.h>
#include <c10/core/TensorImpl.h>

#include <cstdint>
#include <functional>
#include <vector>

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

/// What an operator is given in one place.
struct RecipeArgument {
  /// Where it is no saved tensor's: itself. A tensor is then one that is older than the step, and stays.
  c10::IValue value{};
  SavedId source = -1;  ///< the saved tensor whose storage it views
  StorageView view{};   ///< of that storage
};

/// A Recipe, ready to be carried out.
struct ExecutableRecipe {
  c10::OperatorHandle op;
  std::vector<RecipeArgument> arguments;
  std::size_t output = 0;  ///< which of the operator's results it is
  StorageView view;        ///< as which it comes, all of its storage
};

/// Runs the operator, without history, on the storages of the sources; what comes of it. Throws what the
/// operator throws, c10::OutOfMemoryError too, and c10::Error where the result is laid out otherwise.
at::Tensor remake(const ExecutableRecipe& recipe, const std::function<c10::Storage(SavedId)>& storage_of);

/// That a tensor's content is what it was: autograd's version counter, and what it said.
struct WatchedContent {
  c10::VariableVersion counter;
  std::uint32_t version = 0;

  bool is_unchanged() const { return !counter.enabled() || counter.current_version() == version; }
};

/// The number of changes in place that the tensor's content has seen; 0 where nobody counts them.
std::uint32_t version_of(const at::Tensor& value);

}  // namespace offprof
