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

#include "engine/modules/rng_state.h"
#include "engine/modules/written_attributes.h"
#include "traces/error.h"

namespace offprof {

/// What runs as a segment: a submodule, or a part of a model's forward.
struct SegmentModule {
  std::string name;    ///< in errors
  std::string path;    ///< of the module that is said to save its inputs
  std::string scope;   ///< the path of the module whose method `forward` is
  std::string advice;  ///< what to do where it cannot be one
  torch::jit::Function* forward = nullptr;
  std::vector<AttributePath> written;  ///< attributes that forward writes
  c10::Device device = c10::kCPU;      ///< whose random numbers it draws, beside the CPU's
};

/// One call of a segment: forward runs without saving anything but its tensor arguments, and runs again when
/// backward first asks for what it would have saved.
///
/// The graph is the one that plain autograd makes, so gradients, views, edits in place, several backwards and
/// higher derivatives are autograd's own. Only what its nodes save stands for something that is not there
/// yet: the second run makes it, with the random numbers and the module's attributes as they were in the
/// first. What the second run does to attributes and random number generators is undone. The arguments are
/// saved as any tensor is, through the current step. What the second run saves is held until autograd lets go
/// of it.
///
/// Throws Error (input): the module edits an argument in place, or differentiates itself, or saves other
/// tensors in the second run.
class SegmentRun : public std::enable_shared_from_this<SegmentRun> {
 public:
  explicit SegmentRun(std::shared_ptr<const SegmentModule> module);

  /// Whether a segment runs on this thread, for the first time or again.
  static bool is_running();

  /// Calls forward with these arguments, the module first, and hands out its result. Once.
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
    bool is_wanted = true;  ///< autograd has not let go of it
    at::Tensor value{};     ///< since the second run
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

  std::shared_ptr<const SegmentModule> module_;
  /// Autograd may let go of tensors on any thread, and of one tensor because it lets go of another.
  std::recursive_mutex mutex_;
  std::vector<c10::IValue> arguments_;  ///< without their tensors, which are `inputs_`
  std::vector<std::int32_t> order_;  ///< by tensor among the arguments, its index in `inputs_`; -1: undefined
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
  std::optional<Error> refusal_;  ///< LibTorch's interpreter hides what is thrown through it
};

}  // namespace offprof
