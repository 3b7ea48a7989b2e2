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

#include "engine/recompute/random_draws.h"
#include "engine/scheduler/scheduler.h"

namespace offprof {

/// A tensor without its values: the way it views a storage.
struct StorageView {
  at::ScalarType type = at::kFloat;
  std::vector<std::int64_t> sizes, strides;
  std::int64_t offset = 0;  ///< in elements

  bool operator==(const StorageView&) const = default;
};

StorageView view_of(const at::Tensor& value);
/// Returns a tensor that shares `storage`, without a copy.
at::Tensor view_storage(const c10::Storage& storage, const StorageView& view);

/// One argument of an operator.
struct RecomputeArgument {
  /// The argument itself, if neither `source` nor `step` is set. A tensor is then older than the step, and
  /// stays.
  c10::IValue value{};
  SavedId source = -1;     ///< the saved tensor whose storage it views
  std::int32_t step = -1;  ///< the earlier recompute step whose result's storage it views
  StorageView view{};      ///< of that storage
};

/// One operator call of the recompute steps.
struct RecomputeStep {
  c10::OperatorHandle op;
  std::vector<RecomputeArgument> arguments;
  std::size_t output = 0;             ///< index of the needed result among the operator's results
  StorageView view;                   ///< how the result views its storage, all of which it fills
  std::optional<std::size_t> draw{};  ///< index in RandomDraws: the generator state to restore
};

/// Executable form of a Recomputation: the recompute steps of a tensor.
struct ExecutableRecomputation {
  std::vector<RecomputeStep> steps;  ///< at least one; the last one's result is the recomputed tensor
  /// The random draws that the step must have made before its backward starts; nullptr: nothing is drawn
  /// again.
  std::shared_ptr<const std::vector<Draw>> draws{};

  /// Returns the operators' names: `aten::rsqrt, aten::mul`.
  std::string name() const;
};

/// Inputs of the recompute steps.
struct RecomputeInputs {
  std::function<c10::Storage(SavedId)> storage_of;                ///< of the source tensors
  std::function<const RngState&(std::size_t draw)> state_before;  ///< see RandomDraws
};

/// Runs the operators without autograd history and returns the last one's result. Generators are restored
/// after draws. Throws what an operator throws (c10::OutOfMemoryError too), and c10::Error if a result has
/// another layout than expected.
at::Tensor recompute(const ExecutableRecomputation& recomputation, const RecomputeInputs& inputs);

/// A tensor's content at some time: autograd's version counter, and its value then.
struct WatchedContent {
  c10::VariableVersion counter;
  std::uint32_t version = 0;

  bool is_unchanged() const { return !counter.enabled() || counter.current_version() == version; }
};

/// Returns true if two tensors share a version counter. LibTorch does not report that; but each
/// VariableVersion is one pointer to the counter.
bool is_same_counter(const c10::VariableVersion& a, const c10::VariableVersion& b);

/// Returns the number of in-place changes of the tensor's content; 0 if they are not counted.
std::uint32_t version_of(const at::Tensor& value);

}  // namespace offprof
