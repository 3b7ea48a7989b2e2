#include "engine/checkpointing/checkpointed_call.h"

#include <ATen/autocast_mode.h>
#include <ATen/core/grad_mode.h>
#include <ATen/record_function.h>
#include <fmt/format.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>

#include <algorithm>
#include <utility>

#include "engine/autograd/autograd_engine.h"
#include "engine/checkpointing/module_path.h"
#include "engine/recompute/recompute.h"
#include "engine/torch/dtype_name.h"
#include "engine/torch/ivalue_tensors.h"
#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/model/step_program.h"

namespace offprof {
namespace {

bool is_at(const c10::VariableVersion& counter, std::uint32_t version) {
  return !counter.enabled() || counter.current_version() == version;
}

const c10::VariableVersion& counter_of(const at::Tensor& value) {
  return value.unsafeGetTensorImpl()->version_counter();
}

/// Restores a thread's TorchScript settings and autocast dtype of the first run.
class ThreadScope {
 public:
  ThreadScope(c10::impl::LocalDispatchKeySet keys, c10::DeviceType device, at::ScalarType autocast_type,
              bool optimizes_graphs)
      : keys_(keys),
        device_(device),
        autocast_type_before_(at::autocast::get_autocast_dtype(device)),
        optimized_graphs_(torch::jit::getGraphExecutorOptimize()) {
    at::autocast::set_autocast_dtype(device, autocast_type);
    torch::jit::setGraphExecutorOptimize(optimizes_graphs);
  }
  ~ThreadScope() {
    at::autocast::set_autocast_dtype(device_, autocast_type_before_);
    torch::jit::setGraphExecutorOptimize(optimized_graphs_);
  }
  ThreadScope(const ThreadScope&) = delete;
  ThreadScope& operator=(const ThreadScope&) = delete;

 private:
  c10::impl::ForceDispatchKeyGuard keys_;
  c10::DeviceType device_;
  at::ScalarType autocast_type_before_;
  bool optimized_graphs_;
};

thread_local bool runs_on_this_thread = false;

/// Runs the module's forward. Submodules that it calls run as parts of it.
c10::IValue call(const CheckpointedModule& module, std::vector<c10::IValue> stack) {
  struct Running {
    bool before = std::exchange(runs_on_this_thread, true);
    ~Running() { runs_on_this_thread = before; }
  } running;
  const ModulePathScope scope(module.scope, /*is_running=*/true);
  module.forward->run(stack);
  OFFPROF_CHECK(stack.size() == 1);
  return std::move(stack.front());
}

}  // namespace

/// Placeholder of a saved tensor in the graph: it has no value before the second run.
class CheckpointedCall::StandIn final : public torch::autograd::SavedVariableHooks {
 public:
  explicit StandIn(std::shared_ptr<CheckpointedCall> run) : run_(std::move(run)) {}
  ~StandIn() override {
    if (is_packed_) run_->forget(slot_);
  }
  StandIn(const StandIn&) = delete;
  StandIn& operator=(const StandIn&) = delete;

  void call_pack_hook(const at::Tensor& value) override {
    slot_ = run_->stand_in_for(value);
    is_packed_ = true;
  }
  at::Tensor call_unpack_hook() override { return run_->ask(slot_); }

 private:
  std::shared_ptr<CheckpointedCall> run_;
  std::size_t slot_ = 0;
  bool is_packed_ = false;
};

/// Hooks of the second run's graph: they capture the saved tensors that the placeholders of the first stand
/// for.
class CheckpointedCall::Capture final : public torch::autograd::SavedVariableHooks {
 public:
  explicit Capture(CheckpointedCall& run) : run_(run) {}
  void call_pack_hook(const at::Tensor& value) override { run_.capture(value); }
  at::Tensor call_unpack_hook() override { run_.refuse("differentiates itself"); }

 private:
  CheckpointedCall& run_;
};

CheckpointedCall::CheckpointedCall(std::shared_ptr<const CheckpointedModule> module)
    : module_(std::move(module)),
      rng_(module_->device),
      dispatch_keys_(c10::impl::tls_local_dispatch_key_set()),
      autocast_type_(at::autocast::get_autocast_dtype(module_->device.type())),
      optimizes_graphs_(torch::jit::getGraphExecutorOptimize()) {}

bool CheckpointedCall::is_running() {
  return runs_on_this_thread;
}

c10::IValue CheckpointedCall::first_run(std::vector<c10::IValue> arguments) {
  attributes_ = AttributeValues(arguments.at(0).toObject(), module_->written);
  save(arguments);
  try {
    c10::IValue result = run_without_saving(std::move(arguments));
    check_inputs_unchanged();
    has_run_ = true;
    return result;
  } catch (...) {
    if (refusal_) throw Error(*refusal_);
    throw;
  }
}

c10::IValue CheckpointedCall::run_without_saving(std::vector<c10::IValue> arguments) {
  const SavingElsewhere standing_in([run = shared_from_this()] { return std::make_unique<StandIn>(run); });
  return call(*module_, std::move(arguments));
}

void CheckpointedCall::save(std::vector<c10::IValue>& arguments) {
  const ModulePathScope path(module_->path, /*is_running=*/false);
  RECORD_FUNCTION(kCheckpointOp, c10::ArrayRef<const c10::IValue>{});
  std::vector<const c10::TensorImpl*> seen;
  const auto take = [&](const at::Tensor& value) {
    if (!value.defined()) {
      order_.push_back(-1);
      return value;
    }
    const auto found = std::ranges::find(seen, value.unsafeGetTensorImpl());
    order_.push_back(static_cast<std::int32_t>(found - seen.begin()));
    if (found != seen.end()) return at::Tensor();
    seen.push_back(value.unsafeGetTensorImpl());
    return save_input(value);
  };
  for (const c10::IValue& argument : arguments) arguments_.push_back(with_tensors_replaced(argument, take));
}

/// Returns an undefined tensor, which replaces the value in the arguments.
at::Tensor CheckpointedCall::save_input(const at::Tensor& value) {
  // A leaf may be a parameter, which is recognised by its identity. The history of others is not needed.
  const at::Tensor kept = value.is_leaf() ? value : value.tensor_data();
  inputs_.push_back({torch::autograd::SavedVariable(kept, /*is_output=*/false), counter_of(value),
                     version_of(value), value.requires_grad()});
  return {};
}

void CheckpointedCall::check_inputs_unchanged() {
  for (const Input& input : inputs_)
    if (!is_at(input.counter, input.version)) refuse("edits its input in place");
}

std::size_t CheckpointedCall::stand_in_for(const at::Tensor& value) {
  const std::lock_guard turn(mutex_);
  slots_.push_back({counter_of(value), version_of(value), value.sizes().vec(), value.scalar_type()});
  return slots_.size() - 1;
}

at::Tensor CheckpointedCall::ask(std::size_t slot) {
  const std::lock_guard turn(mutex_);
  check_version(slots_[slot]);
  if (failure_) std::rethrow_exception(failure_);
  if (!has_values_) second_run();
  return slots_[slot].value;
}

void CheckpointedCall::forget(std::size_t slot) noexcept {
  const std::lock_guard turn(mutex_);
  slots_[slot].is_wanted = false;
  slots_[slot].value.reset();
}

void CheckpointedCall::check_version(const Slot& slot) const {
  TORCH_CHECK(
      is_at(slot.counter, slot.version),
      "one of the variables needed for gradient computation has been modified by an inplace operation: [",
      c10::toString(slot.type), " ", c10::IntArrayRef(slot.sizes), "], which the checkpointed module ",
      module_->name, " created, is at version ", slot.counter.current_version(), "; expected version ",
      slot.version, " instead.");
}

void CheckpointedCall::second_run() {
  if (!has_run_) refuse("differentiates itself");
  try {
    run_forward_again();
    if (captured_ != slots_.size())
      refuse(fmt::format("saves {} tensors in the recomputed forward, but {} in the first forward", captured_,
                         slots_.size()));
    has_values_ = true;
  } catch (...) {
    failure_ = refusal_ ? std::make_exception_ptr(Error(*refusal_)) : std::current_exception();
    for (Slot& slot : slots_) slot.value.reset();
    std::rethrow_exception(failure_);
  }
}

void CheckpointedCall::run_forward_again() {
  const ThreadScope thread(dispatch_keys_, module_->device.type(), autocast_type_, optimizes_graphs_);
  const at::AutoGradMode grad(true);
  std::vector<c10::IValue> arguments = arguments_again();
  const RngScope rng(rng_);
  const AttributeScope attributes(attributes_);
  const SavingElsewhere capturing([this] { return std::make_unique<Capture>(*this); });
  call(*module_, std::move(arguments));
}

void CheckpointedCall::capture(const at::Tensor& value) {
  if (captured_ == slots_.size())
    refuse("saves more tensors in the recomputed forward than in the first forward");
  Slot& slot = slots_[captured_++];
  if (value.scalar_type() != slot.type || value.sizes() != c10::IntArrayRef(slot.sizes))
    refuse(fmt::format("saves a different tensor in the recomputed forward, {}{} instead of {}{}",
                       dtype_name(value.scalar_type()), c10::str(value.sizes()), dtype_name(slot.type),
                       c10::str(c10::IntArrayRef(slot.sizes))));
  if (slot.is_wanted) slot.value = value.tensor_data();
}

/// Returns the arguments of the first run, without history.
std::vector<c10::IValue> CheckpointedCall::arguments_again() const {
  std::vector<at::Tensor> values;
  for (const Input& input : inputs_) values.push_back(input_again(input));
  std::size_t next = 0;
  const auto put = [&](const at::Tensor&) {
    const std::int32_t input = order_[next++];
    return input < 0 ? at::Tensor() : values[input];
  };
  std::vector<c10::IValue> arguments;
  for (const c10::IValue& argument : arguments_) arguments.push_back(with_tensors_replaced(argument, put));
  return arguments;
}

at::Tensor CheckpointedCall::input_again(const Input& input) const {
  TORCH_CHECK(
      is_at(input.counter, input.version),
      "one of the variables needed for gradient computation has been modified by an inplace operation: an "
      "input of the checkpointed module ",
      module_->name, ", whose forward is recomputed in backward, is at version ",
      input.counter.current_version(), "; expected version ", input.version,
      " instead. If the edit is intended, ", module_->advice, ".");
  at::Tensor value = input.saved.unpack().tensor_data();
  value.set_requires_grad(input.requires_grad);
  return value;
}

void CheckpointedCall::refuse(const std::string& why) {
  refusal_ =
      input_error(fmt::format("{} {}, so it cannot be checkpointed", module_->name, why), module_->advice);
  throw Error(*refusal_);
}

}  // namespace offprof
