#include "engine/autograd/offload_step.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <utility>

#include "engine/torch/dtype_name.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

constexpr const char* kAskedAgain =
    "backward unpacked a saved tensor that the policy's rules had released after the first backward: tensor ";

bool has_plain_storage(const at::Tensor& value) {
  return value.defined() && value.layout() == at::kStrided && !value.is_quantized() && value.has_storage() &&
         !value.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

Bytes bytes_of(const at::Tensor& value) {
  return static_cast<Bytes>(value.numel() * static_cast<std::int64_t>(value.element_size()));
}

}  // namespace

/// One thread's turn in the step. Encloses the time that the engine takes from the model.
class OffloadStep::HookScope {
 public:
  explicit HookScope(OffloadStep& step) : lock_(step.mutex_), listener_(step.listener_) {
    if (listener_ != nullptr) listener_->on_hook_begin();
  }
  ~HookScope() {
    if (listener_ != nullptr) listener_->on_hook_end();
  }
  HookScope(const HookScope&) = delete;
  HookScope& operator=(const HookScope&) = delete;

 private:
  std::lock_guard<std::recursive_mutex> lock_;
  StepListener* listener_;
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
      copies_tensors_(policy.scheduler == SchedulerKind::kTrl),
      copies_(device, copies_tensors_, has_one_copy_stream(policy) ? CopyQueue::kD2h : CopyQueue::kH2d),
      guide_(std::move(guide)),
      residents_(std::move(residents)),
      listener_(listener),
      first_allocation_(device.next_allocation()),
      scheduler_(make_scheduler(policy, guide_.backward_order, *this)),
      wants_node_ends_(scheduler_->needs_node_ends() || (listener != nullptr && listener->wants_node_ends())),
      draws_(draws_for(guide_, device.torch_device())) {}

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

SavedId OffloadStep::pack(const at::Tensor& value) {
  const HookScope scope(*this);
  device_.check_compute_stream();
  const auto tensor = static_cast<SavedId>(saved_.size());
  PackRequest request = describe(value);
  saved_.push_back({shell_of(value), version_of(value), -1, value.unsafeGetTensorImpl()->version_counter()});
  const RuledPlacement rule = rule_for(tensor, value, request);
  rule_transform_ = rule ? rule->transform : -1;
  rule_recomputation_ = rule ? rule->recomputation : nullptr;
  // A copy encoded from one type cannot serve a tensor of another type. A recording proves beforehand that
  // there are no such two tensors.
  if (guide_.place && rule_transform_ >= 0)
    request.version = content_of(value, request.storage, value.scalar_type());
  const PackDecision decision = scheduled([&] { return scheduler_->pack(tensor, request, rule); });
  Saved& saved = saved_[tensor];
  saved.copy = decision.copy;
  if (decision.copy >= 0) {
    check_shared_type(saved);
    saved.shell->set_storage_keep_dtype(copies_.no_storage());
  }
  LedgerEntry& entry = ledger_[ledger_key(decision)];
  ++entry.tensors;
  entry.bytes += request.tensor_bytes;
  if (listener_ != nullptr) listener_->on_pack(tensor, value, request, decision);
  return tensor;
}

PackRequest OffloadStep::describe(const at::Tensor& value) {
  PackRequest request;
  if (!has_plain_storage(value)) {
    request.movability = Movability::kUnsupportedLayout;
    return request;
  }
  if (residents_->is_parameter_group && residents_->is_parameter_group(value.storage())) {
    request.movability = Movability::kParameterGroup;
    request.tensor_bytes = bytes_of(value);
    return request;
  }
  const std::optional<AllocationId> allocation = device_.allocation_of(value.storage());
  const StorageRole role = role_of(allocation.value_or(0));
  request.storage = allocation.value_or(0);
  request.storage_bytes = static_cast<Bytes>(value.storage().nbytes());
  request.tensor_bytes = bytes_of(value);
  request.movability = movability_of(value, allocation, role);
  if (request.movability == Movability::kMovable)
    request.version = content_of(value, request.storage, at::ScalarType::Undefined);
  request.is_parameter =
      role == StorageRole::kParameter && residents_->parameters.contains(value.unsafeGetTensorImpl());
  return request;
}

RuledPlacement OffloadStep::rule_for(SavedId tensor, const at::Tensor& value,
                                     const PackRequest& request) const {
  if (static_cast<std::size_t>(tensor) < guide_.placements.size()) return guide_.placements[tensor];
  const bool may_be_encoded = guide_.place && request.movability == Movability::kMovable &&
                              request.tensor_bytes == request.storage_bytes && is_dense(value);
  return may_be_encoded ? guide_.place(value) : std::nullopt;
}

LedgerKey OffloadStep::ledger_key(const PackDecision& decision) const {
  LedgerKey key = {decision.place, decision.reason};
  if (decision.copy >= 0 && copies_[decision.copy].transform)
    key.transform = copies_[decision.copy].transform->name();
  return key;
}

/// Throws if the tensor's copy was encoded from numbers of another type.
void OffloadStep::check_shared_type(const Saved& saved) const {
  const StepCopies::Copy& copy = copies_[saved.copy];
  const at::ScalarType type = c10::typeMetaToScalarType(saved.shell->dtype());
  TORCH_CHECK(!copy.transform || copy.type == type, "a saved tensor of type ", dtype_name(type),
              " shares the storage of a tensor that was encoded as ", dtype_name(copy.type),
              ": the recorded step, to which the policy's rules were applied, has no such tensor");
}

std::uint32_t OffloadStep::content_of(const at::Tensor& value, AllocationId allocation,
                                      at::ScalarType encoded_as) {
  const c10::VariableVersion& counter = value.unsafeGetTensorImpl()->version_counter();
  const std::uint32_t version = version_of(value);
  std::vector<Content>& contents = contents_[allocation];
  const auto found = std::find_if(contents.rbegin(), contents.rend(), [&](const Content& content) {
    return content.version == version && content.encoded_as == encoded_as &&
           is_same_counter(content.counter, counter);
  });
  if (found != contents.rend()) return static_cast<std::uint32_t>(contents.rend() - found - 1);
  contents.push_back({counter, version, encoded_as});
  return static_cast<std::uint32_t>(contents.size() - 1);
}

StorageRole OffloadStep::role_of(AllocationId allocation) const {
  if (allocation >= first_allocation_) return StorageRole::kActivation;
  const auto found = residents_->roles.find(allocation);
  return found == residents_->roles.end() ? StorageRole::kResident : found->second;
}

Movability OffloadStep::movability_of(const at::Tensor& value, std::optional<AllocationId> allocation,
                                      StorageRole role) const {
  if (value.storage().nbytes() == 0) return Movability::kEmpty;
  if (!allocation) return Movability::kUnsupportedLayout;
  switch (role) {
    case StorageRole::kActivation:
      return Movability::kMovable;
    case StorageRole::kParameter:
      return Movability::kParameter;
    case StorageRole::kBuffer:
      return Movability::kBuffer;
    case StorageRole::kInput:
      return Movability::kInput;
    case StorageRole::kResident:
      return Movability::kResident;
  }
  OFFPROF_CHECK(false);
}

at::Tensor OffloadStep::unpack(SavedId tensor) {
  const HookScope scope(*this);
  const Shell shell = saved_[tensor].shell;  // the scheduler may release it
  TORCH_CHECK(shell.defined(), kAskedAgain, tensor);
  check_version(saved_[tensor]);
  is_backward_ = true;
  if (wants_node_ends_) watch_node_end();
  if (listener_ != nullptr) listener_->on_unpack(tensor);
  scheduled([&] { ask_scheduler_for(tensor, shell); });
  if (wants_node_ends_) node_tensors_.push_back(tensor);
  const CopyId copy = saved_[tensor].copy;
  TORCH_CHECK(copy < 0 || copies_.is_on_device(copy), kAskedAgain, tensor);
  at::Tensor value = copy < 0 ? at::Tensor(shell) : restore(shell, copies_[copy]);
  if (wants_node_ends_ && watched_node_ == nullptr) node_end();
  return value;
}

void OffloadStep::ask_scheduler_for(SavedId tensor, const Shell& shell) {
  try {
    scheduler_->unpack(tensor);
  } catch (const c10::OutOfMemoryError& error) {
    throw ReloadOutOfMemory(
        tensor,
        c10::str("saved tensor ", tensor, ", ", dtype_name(c10::typeMetaToScalarType(shell->dtype())),
                 shell->sizes(), ", cannot be reloaded for backward: there is no device memory for its ",
                 copies_[saved_[tensor].copy].bytes,
                 " bytes, and nothing is left to free (use a smaller prefetch window or batch, or offload "
                 "more tensors): ",
                 error.what_without_backtrace()));
  }
}

void OffloadStep::check_version(const Saved& saved) const {
  const c10::VariableVersion& counter = saved.shell->version_counter();
  if (!counter.enabled()) return;
  TORCH_CHECK(
      counter.current_version() == saved.version,
      "one of the variables needed for gradient computation has been modified by an inplace operation: [",
      c10::toString(c10::typeMetaToScalarType(saved.shell->dtype())), " ", saved.shell->sizes(),
      "] is at version ", counter.current_version(), "; expected version ", saved.version, " instead.");
}

at::Tensor OffloadStep::restore(const Shell& shell, const StepCopies::Copy& copy) const {
  Shell tensor =
      shell->shallow_copy_and_detach(shell->version_counter(), /*allow_tensor_metadata_change=*/true);
  tensor->set_storage_keep_dtype(copy.device_storage);
  if (copies_tensors_ && copy.reloaded) {
    const at::Tensor original(shell);
    const std::vector<std::int64_t> strides =
        is_dense(original) ? original.strides().vec()
                           : at::infer_dense_strides(original.sizes(), original.strides());
    tensor->set_sizes_and_strides(original.sizes(), strides, /*storage_offset=*/0);
  }
  return at::Tensor(std::move(tensor));
}

void OffloadStep::watch_node_end() {
  const std::shared_ptr<torch::autograd::Node> node = torch::autograd::get_current_node();
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
  for (const SavedId tensor : node_tensors_) {
    const CopyId copy = saved_[tensor].copy;
    if (copy >= 0 && copies_[copy].reloaded && is_used_elsewhere(copy)) node_escaped_.push_back(tensor);
  }
  if (listener_ != nullptr) listener_->on_node_end(node_tensors_, node_escaped_);
  scheduled([&] { scheduler_->node_end(node_tensors_, node_escaped_); });
  node_tensors_.clear();
}

/// Returns true if something that backward made shares the storage of a reload; otherwise only the copy
/// holds it.
bool OffloadStep::is_used_elsewhere(CopyId copy) const {
  return copies_[copy].device_storage.use_count() > 1;
}

void OffloadStep::backward_end() {
  const HookScope scope(*this);
  if (listener_ != nullptr) listener_->on_backward_end();
  scheduled([&] {
    scheduler_->backward_end();
    copies_.finish_disk_reads();
  });
}

void OffloadStep::release(SavedId tensor) noexcept {
  const HookScope scope(*this);
  if (listener_ != nullptr) {
    listener_->on_release(tensor);
    const CopyId copy = saved_[tensor].copy;
    const bool is_held = copy >= 0 && copies_[copy].reloaded && copies_[copy].device_storage.use_count() > 0;
    if (is_held && !is_used_elsewhere(copy)) listener_->on_unpacked_freed(tensor);
  }
  try {
    if (!failure_) scheduled([&] { scheduler_->release(tensor); });
  } catch (...) {
    // `failure_` keeps the exception. Autograd releases tensors in destructors.
  }
  // A kept tensor may still be needed to recompute others: kReleaseKept releases it.
  if (failure_ || saved_[tensor].copy >= 0) saved_[tensor].shell.reset();
}

void OffloadStep::execute(const Command& command) {
  commands_.push_back(command);
  if (listener_ == nullptr) return run(command);
  listener_->on_command_begin(command);
  const Device::TimeMark begin = device_.mark();
  run(command);
  listener_->on_command(command, begin, device_.mark());
}

/// Tries only the memory allocation: once it succeeds, the copy in is like any other.
bool OffloadStep::try_execute(const Command& command) {
  if (command.kind == CommandKind::kTakeDisk) return take_disk(command);
  try {
    if (command.kind == CommandKind::kRecompute)
      copies_.take_memory(recomputed(command));
    else
      copies_.take_memory_for(command);
  } catch (const c10::OutOfMemoryError&) {
    device_.take_out_of_memory();  // the step continues, so no later caller may find this refusal
    ++refused_reloads_;
    return false;
  }
  execute(command);
  return true;
}

bool OffloadStep::take_disk(const Command& command) {
  if (!copies_.take_disk(command)) return false;
  execute(command);
  return true;
}

void OffloadStep::run(const Command& command) {
  switch (command.kind) {
    case CommandKind::kKeep:
      return;  // the shell holds the tensor
    case CommandKind::kReleaseKept:
      saved_[command.tensor].shell.reset();
      return;
    case CommandKind::kCopyOut:
      copies_.copy_out(command, at::Tensor(saved_[command.tensor].shell));
      return tell_hold(command.copy);
    case CommandKind::kCopyIn:
      copies_.copy_in(command);
      return tell_reload(command.copy);
    case CommandKind::kWaitOut:
    case CommandKind::kWaitIn:
      return copies_.wait(command);
    case CommandKind::kDrop:
      return copies_.drop(command.copy);
    case CommandKind::kFreeHost:
      return copies_.free_host(command);
    case CommandKind::kEncode:
      return copies_.encode(command, at::Tensor(saved_[command.tensor].shell),
                            guide_.transforms[rule_transform_]);
    case CommandKind::kDecode:
      copies_.decode(command);
      return tell_reload(command.copy);
    case CommandKind::kTakeDisk:
      return;  // taken in try_execute
    case CommandKind::kWriteDisk:
      return copies_.write_disk(command);
    case CommandKind::kReadDisk:
      return copies_.read_disk(command);
    case CommandKind::kWaitWrite:
    case CommandKind::kWaitRead:
      return copies_.wait_for_disk(command);
    case CommandKind::kFreeDisk:
      return copies_.free_disk(command);
    case CommandKind::kDropForRecompute:
      return discard(command);
    case CommandKind::kRecompute:
      copies_.recompute(command, [&] { return recomputed(command); });
      recomputes_.erase(command.copy);
      return tell_reload(command.copy);
  }
}

void OffloadStep::tell_hold(CopyId copy) {
  if (listener_ == nullptr) return;
  const c10::Storage& storage = copies_[copy].device_storage;
  const std::optional<AllocationId> allocation = device_.allocation_of(storage);
  if (allocation) listener_->on_hold(copy, *allocation, storage);
}

void OffloadStep::tell_reload(CopyId copy) {
  if (listener_ == nullptr) return;
  const std::optional<AllocationId> allocation = device_.allocation_of(copies_[copy].device_storage);
  if (allocation) listener_->on_reload(copy, *allocation);
}

}  // namespace offprof
