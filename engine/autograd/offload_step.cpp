#include "engine/autograd/offload_step.h"

#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <utility>

#include "engine/torch/dtype_name.h"
#include "engine/torch/torch_compat.h"

namespace offprof {
namespace {

constexpr const char* kAskedAgain =
    "backward unpacked a saved tensor that the policy's rules had released after the first backward: tensor ";

at::ScalarType type_of(const Shell& shell) {
  return c10::typeMetaToScalarType(shell->dtype());
}

/// Throws if the tensor's copy was encoded from numbers of another type.
void check_shared_type(const Shell& shell, const StepCopies::Copy& copy) {
  const at::ScalarType type = type_of(shell);
  TORCH_CHECK(!copy.transform || copy.type == type, "a saved tensor of type ", dtype_name(type),
              " shares the storage of a tensor that was encoded as ", dtype_name(copy.type),
              ": the recorded step, to which the policy's rules were applied, has no such tensor");
}

}  // namespace

/// One thread's turn in the step. Encloses the time that the engine takes from the model.
class OffloadStep::HookScope {
 public:
  explicit HookScope(OffloadStep& step) : lock_(step.mutex_), step_(step), listener_(step.listener_) {
    if (step_.open_hooks_++ == 0) begin_ = step_.device_.counts();
    if (listener_ != nullptr) listener_->on_hook_begin();
  }
  ~HookScope() {
    if (listener_ != nullptr) listener_->on_hook_end();
    if (--step_.open_hooks_ == 0)
      step_.engine_counts_ = step_.engine_counts_ + (step_.device_.counts() - begin_);
  }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  OffloadStep& step_;
  StepListener* listener_;
  DeviceCounts begin_;  ///< of the outermost scope
};

/// Runs after the node, before autograd releases the node's saved tensors.
class OffloadStep::NodeEndHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit NodeEndHook(OffloadStep& step) : step_(step) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    step_.node_end();
    return outputs;
  }

 private:
  OffloadStep& step_;  // the node's own saved tensors keep it alive
};

OffloadStep::OffloadStep(Device& device, const Policy& policy, StepGuide guide,
                         std::shared_ptr<const Residents> residents, StepListener* listener)
    : device_(device),
      guide_(std::move(guide)),
      executor_(device, policy, guide_, listener),
      contents_(device, std::move(residents)),
      listener_(listener),
      scheduler_(make_scheduler(policy, guide_.backward_order, executor_)),
      wants_node_ends_(scheduler_->needs_node_ends() ||
                       (listener != nullptr && listener->wants_node_ends())) {}

void OffloadStep::stop_listening() {
  listener_ = nullptr;
  executor_.stop_listening();
}

/// Calls the scheduler. After a failed call the scheduler is in an undefined state, so all later calls throw
/// the same exception.
template <typename Call>
auto OffloadStep::scheduled(Call call) {
  if (failure_) std::rethrow_exception(failure_);
  try {
    return call();
  } catch (...) {
    failure_ = std::current_exception();
    throw;
  }
}

SavedId OffloadStep::pack(const at::Tensor& value, const at::Tensor& saved) {
  if (StepListener* const listener = listener_) listener->on_pack_begin();
  const HookScope scope(*this);
  device_.check_compute_stream();
  PackRequest request = contents_.describe(value, saved, torch::autograd::get_current_node() != nullptr);
  if (request.movability == Movability::kMovable) device_.check_stream_of(value.storage());
  // DeepSpeed's ZeRO-3 gives a gathered parameter another storage for backward.
  const bool is_gathered_parameter = request.movability == Movability::kParameterGroup && value.is_leaf();
  const SavedId tensor = executor_.hold(value, is_gathered_parameter);
  const RuledPlacement rule = rule_for(tensor, value, request);
  // A recording proves beforehand that no two tensors of different types share an encoded copy.
  if ((guide_.place || guide_.decide) && rule && rule->transform >= 0)
    request.version = contents_.encoded_version(value, request.storage);
  const PackDecision decision =
      scheduled([&] { return scheduler_->pack(tensor, asked_of(request, value), rule); });
  if (decision.copy >= 0) {
    check_shared_type(executor_.held(tensor).shell, executor_.copies()[decision.copy]);
    executor_.hand_over(tensor, decision.copy);
  }
  add_to_ledger(decision, request.tensor_bytes);
  if (StepListener* const listener = listener_) listener->on_pack(tensor, value, request, decision);
  return tensor;
}

/// Returns the request that the scheduler gets: see StepGuide::moves_inputs.
PackRequest OffloadStep::asked_of(PackRequest request, const at::Tensor& value) const {
  const bool is_input =
      request.movability == Movability::kInput && contents_.is_made_in_step(request.storage);
  if (guide_.moves_inputs && is_input && !device_.is_of_other_stream(value.storage()))
    request.movability = Movability::kMovable;
  return request;
}

RuledPlacement OffloadStep::rule_for(SavedId tensor, const at::Tensor& value,
                                     const PackRequest& request) const {
  if (guide_.decide) return guide_.decide(tensor, value, request);
  if (static_cast<std::size_t>(tensor) < guide_.placements.size()) return guide_.placements[tensor];
  const bool may_be_encoded = guide_.place && request.movability == Movability::kMovable &&
                              request.tensor_bytes == request.storage_bytes && is_dense(value);
  return may_be_encoded ? guide_.place(value) : std::nullopt;
}

void OffloadStep::add_to_ledger(const PackDecision& decision, Bytes bytes) {
  LedgerKey key = {decision.place, decision.reason};
  if (decision.copy >= 0)
    if (const auto& transform = executor_.copies()[decision.copy].transform)
      key.transform = transform->name();
  LedgerEntry& entry = ledger_[key];
  ++entry.tensors;
  entry.bytes += bytes;
}

void OffloadStep::draw(const std::string& op) {
  const std::lock_guard turn(mutex_);
  executor_.recompute().draw(op);
}

at::Tensor OffloadStep::unpack(SavedId tensor) {
  const HookScope scope(*this);
  const Shell shell = executor_.held(tensor).shell;  // the scheduler may release it
  TORCH_CHECK(shell.defined(), kAskedAgain, tensor);
  check_unmodified(executor_.held(tensor));
  const bool is_first = executor_.recompute().end_forward();
  if (wants_node_ends_) watch_node_end();
  if (StepListener* const listener = listener_) {
    if (is_first) listener->on_backward_begin(executor_.copies());
    listener->on_unpack(tensor);
  }
  scheduled([&] { ask_scheduler_for(tensor, shell); });
  if (wants_node_ends_) node_tensors_.push_back(tensor);
  const CopyId copy = executor_.held(tensor).copy;
  TORCH_CHECK(copy < 0 || executor_.copies().is_on_device(copy), kAskedAgain, tensor);
  at::Tensor value = executor_.restore(tensor, shell);
  if (value.has_storage())
    contents_.add_unpacked(tensor, value.storage(), copy >= 0 && executor_.copies()[copy].reloaded);
  if (wants_node_ends_ && watched_node_ == nullptr) node_end();
  return value;
}

void OffloadStep::ask_scheduler_for(SavedId tensor, const Shell& shell) {
  try {
    scheduler_->unpack(tensor);
  } catch (const c10::OutOfMemoryError& error) {
    throw ReloadOutOfMemory(
        tensor,
        c10::str("saved tensor ", tensor, ", ", dtype_name(type_of(shell)), shell->sizes(),
                 ", cannot be reloaded for backward: there is no device memory for its ",
                 executor_.copies()[executor_.held(tensor).copy].bytes,
                 " bytes, and nothing is left to free (use a smaller prefetch window or batch, or offload "
                 "more tensors): ",
                 error.what_without_backtrace()));
  }
}

void OffloadStep::add_inputs(std::span<const at::Tensor> tensors) {
  if (torch::autograd::get_current_node() != nullptr) return;
  const std::lock_guard turn(mutex_);
  contents_.add_inputs(tensors);
}

void OffloadStep::add_outputs(std::span<const at::Tensor> tensors) {
  const std::lock_guard turn(mutex_);
  contents_.add_outputs(tensors);
}

void OffloadStep::watch_node_end() {
  const NodePointer node = torch::autograd::get_current_node();
  if (node.get() == watched_node_) return;
  watched_node_ = node.get();
  if (node) node->add_post_hook(std::make_unique<NodeEndHook>(*this));
}

void OffloadStep::node_end() {
  const std::lock_guard turn(mutex_);
  watched_node_ = nullptr;
  if (node_tensors_.empty()) return;
  const HookScope scope(*this);
  node_escaped_.clear();
  for (const SavedId tensor : node_tensors_)
    if (executor_.is_reload_used_elsewhere(tensor)) node_escaped_.push_back(tensor);
  if (StepListener* const listener = listener_) listener->on_node_end(node_tensors_, node_escaped_);
  scheduled([&] { scheduler_->node_end(node_tensors_, node_escaped_); });
  node_tensors_.clear();
}

void OffloadStep::backward_end() {
  const HookScope scope(*this);
  contents_.backward_end();
  if (StepListener* const listener = listener_) listener->on_backward_end();
  scheduled([&] {
    scheduler_->backward_end();
    executor_.finish_disk_reads();
  });
}

void OffloadStep::release(SavedId tensor) noexcept {
  const HookScope scope(*this);
  if (StepListener* const listener = listener_) {
    listener->on_release(tensor);
    if (executor_.is_reload_unused(tensor)) listener->on_unpacked_freed(tensor);
  }
  try {
    if (!failure_) scheduled([&] { scheduler_->release(tensor); });
  } catch (...) {
    // `failure_` keeps the exception. Autograd releases tensors in destructors.
  }
  // A kept tensor may still be needed to recompute others: ReleaseKept releases it.
  if (failure_ || executor_.held(tensor).copy >= 0) executor_.release(tensor);
}

}  // namespace offprof
