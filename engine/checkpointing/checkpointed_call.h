#pragma once

#include <ATen/core/Tensor.h>
#include <ATen/core/function.h>
#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>
#include <c10/core/TensorImpl.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/saved_variable.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "engine/checkpointing/written_attributes.h"
#include "engine/torch/rng_state.h"
#include "traces/base/error.h"

namespace offprof {

/// A checkpointed module: a submodule, or a part of a model's forward.
struct CheckpointedModule {
  std::string name;    ///< for errors
  std::string path;    ///< path of the module that saves the inputs, as reported
  std::string scope;   ///< path of the module with the method `forward`
  std::string advice;  ///< for errors: what to do if it cannot be checkpointed
  torch::jit::Function* forward = nullptr;
  std::vector<AttributePath> written;  ///< attributes that forward writes
  c10::Device device = c10::kCPU;      ///< the device (beside the CPU) whose random numbers forward draws
};

/// One call of a checkpointed module: forward runs and saves only its tensor arguments, and runs again when
/// backward first unpacks a tensor that it would have saved.
///
/// The graph is the one that plain autograd builds, so gradients, views, in-place edits, several backwards
/// and higher derivatives are autograd's own. Only the tensors that its nodes save are placeholders: the
/// second run computes their values, with the random numbers and the module's attributes of the first run.
/// Its effects on attributes and random number generators are undone. The arguments are saved like any
/// tensor, through the current step. Tensors that the second run saves are held until autograd releases them.
///
/// Throws Error (input) if the module edits an argument in place, differentiates itself, or saves other
/// tensors in the second run.
class CheckpointedCall : public std::enable_shared_from_this<CheckpointedCall> {
 public:
  explicit CheckpointedCall(std::shared_ptr<const CheckpointedModule> module);

  /// Returns true if a checkpointed module runs on this thread, in its first or second run.
  static bool is_running();

  /// Calls forward with these arguments, the module first, and returns its result. Call once.
  c10::IValue first_run(std::vector<c10::IValue> arguments);

 private:
  class StandIn;
  class Capture;

  /// A tensor among the arguments.
  struct Input {
    torch::autograd::SavedVariable saved;
    c10::VariableVersion counter;
    std::uint32_t version = 0;
    bool requires_grad = false;
  };
  /// A tensor that a node of the graph would have saved.
  struct Slot {
    c10::VariableVersion counter;
    std::uint32_t version = 0;
    std::vector<std::int64_t> sizes;
    at::ScalarType type = at::ScalarType::Undefined;
    bool is_wanted = true;  ///< autograd has not released it
    at::Tensor value{};     ///< set by the second run
  };

  void save(std::vector<c10::IValue>& arguments);
  at::Tensor save_input(const at::Tensor& value);
  c10::IValue run_without_saving(std::vector<c10::IValue> arguments);
  void check_inputs_unchanged();
  std::size_t stand_in_for(const at::Tensor& value);
  at::Tensor ask(std::size_t slot);
  void forget(std::size_t slot) noexcept;
  void check_version(const Slot& slot) const;
  void second_run();
  void capture(const at::Tensor& value);
  void run_forward_again();
  std::vector<c10::IValue> arguments_again() const;
  at::Tensor input_again(const Input& input) const;
  [[noreturn]] void refuse(const std::string& why);

  std::shared_ptr<const CheckpointedModule> module_;
  /// Autograd may release tensors on any thread, and releasing one may release another.
  std::recursive_mutex mutex_;
  std::vector<c10::IValue> arguments_;  ///< without their tensors, which are `inputs_`
  /// Index in `inputs_` of each tensor among the arguments; -1: undefined.
  std::vector<std::int32_t> order_;
  std::vector<Input> inputs_;
  RngState rng_;
  AttributeValues attributes_;
  c10::impl::LocalDispatchKeySet dispatch_keys_;
  at::ScalarType autocast_type_;
  bool optimizes_graphs_;
  bool has_run_ = false;  ///< the first run is done
  std::vector<Slot> slots_;
  bool has_values_ = false;
  std::size_t captured_ = 0;
  std::exception_ptr failure_;    ///< of the second run
  std::optional<Error> refusal_;  ///< LibTorch's interpreter hides exceptions thrown through it
};

}  // namespace offprof
