#include "engine/offload_step.h"

#include <ATen/ExpandUtils.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <torch/csrc/autograd/function.h>
#include <torch/csrc/autograd/function_hook.h>

#include <algorithm>
#include <cstring>
#include <utility>

#include "engine/dtype_name.h"
#include "traces/check.h"

namespace offprof {
namespace {

constexpr const char* kAskedAgain =
    "backward asked again for a saved tensor that the policy's rules let go of after one backward: tensor ";

bool has_plain_storage(const at::Tensor& value) {
  return value.defined() && value.layout() == at::kStrided && !value.is_quantized() && value.has_storage() &&
         !value.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

bool is_dense(const at::Tensor& value) {
  return value.is_non_overlapping_and_dense();
}

/// All of the tensor, sharing storage and version counter, without its history: to hold the history would be
/// a cycle.
c10::intrusive_ptr<c10::TensorImpl> shell_of(const at::Tensor& value) {
  c10::TensorImpl* impl = value.unsafeGetTensorImpl();
  return impl->shallow_copy_and_detach(impl->version_counter(), /*allow_tensor_metadata_change=*/true);
}

/// What copy_ reads, without the marks that would have it conjugate or negate: the restored tensor bears
/// them.
void strip_lazy_marks(c10::TensorImpl& impl) {
  impl._set_conj(false);
  impl._set_neg(false);
}

std::uint32_t version_of(const at::Tensor& value) {
  return value.is_inference() ? 0 : static_cast<std::uint32_t>(value._version());
}

/// LibTorch does not tell whether two tensors count together; but what it hands out is one pointer to the
/// counter.
bool is_same_counter(const c10::VariableVersion& a, const c10::VariableVersion& b) {
  static_assert(sizeof(c10::VariableVersion) == sizeof(void*));
  return std::memcmp(&a, &b, sizeof(void*)) == 0;
}

}  // namespace

/// A thread's turn. Encloses the time that the engine takes of the program's.
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

/// Runs after the node, before autograd releases what the node saved.
class OffloadStep::NodeEndHook final : public torch::autograd::FunctionPostHook {
 public:
  explicit NodeEndHook(OffloadStep& step) : step_(step) {}
  torch::autograd::variable_list operator()(const torch::autograd::variable_list& outputs,
                                            const torch::autograd::variable_list&) override {
    step_.node_end();
    return outputs;
  }

 private:
  OffloadStep& step_;  // the node's own saved tensors hold it
};

OffloadStep::OffloadStep(Device& device, const Policy& policy, std::vector<SavedId> backward_order,
                         std::shared_ptr<const Residents> residents, StepListener* listener)
    : device_(device),
      copies_tensors_(policy.scheduler == SchedulerKind::kTrl),
      reload_queue_(has_one_copy_stream(policy) ? CopyQueue::kD2h : CopyQueue::kH2d),
      backward_order_(std::move(backward_order)),
      residents_(std::move(residents)),
      listener_(listener),
      first_allocation_(device.next_allocation()),
      no_storage_(device.allocate(0)),
      scheduler_(make_scheduler(policy, backward_order_, *this)),
      wants_node_ends_(scheduler_->needs_node_ends() ||
                       (listener != nullptr && listener->wants_node_ends())) {}

OffloadStep::~OffloadStep() {
  // What a failure left: nobody has waited for these copies, and nobody frees their host memory.
  for (const DeviceCopy& copy : copies_) {
    if (copy.host == nullptr) continue;
    wait_at_any_rate(copy);
    device_.free_host(copy.host, copy.bytes);
  }
}

/// A device that cannot even become idle copies nothing any more.
void OffloadStep::wait_at_any_rate(const DeviceCopy& copy) noexcept {
  try {
    device_.wait(copy.queue, copy.event);
  } catch (...) {
    try {
      device_.synchronize();
    } catch (...) {
    }
  }
}

/// What the scheduler has begun and not ended it cannot go on from: all that is asked of it after that fails
/// as that did.
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
  const auto tensor = static_cast<SavedId>(saved_.size());
  const PackRequest request = describe(value);
  saved_.push_back({shell_of(value), version_of(value)});
  const PackDecision decision = scheduled([&] { return scheduler_->pack(tensor, request); });
  Saved& saved = saved_[tensor];
  saved.copy = decision.copy;
  if (decision.placement == Placement::kHost) saved.shell->set_storage_keep_dtype(no_storage_);
  LedgerEntry& entry = ledger_[{decision.placement, decision.reason}];
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
  const std::optional<AllocationId> allocation = device_.allocation_of(value.storage());
  const StorageRole role = role_of(allocation.value_or(0));
  request.storage = allocation.value_or(0);
  request.storage_bytes = static_cast<Bytes>(value.storage().nbytes());
  request.tensor_bytes = static_cast<Bytes>(value.numel() * static_cast<std::int64_t>(value.element_size()));
  request.movability = movability_of(value, allocation, role);
  if (request.movability == Movability::kMovable) request.version = content_of(value, request.storage);
  request.is_parameter =
      role == StorageRole::kParameter && residents_->parameters.contains(value.unsafeGetTensorImpl());
  return request;
}

std::uint32_t OffloadStep::content_of(const at::Tensor& value, AllocationId allocation) {
  const c10::VariableVersion& counter = value.unsafeGetTensorImpl()->version_counter();
  const std::uint32_t version = version_of(value);
  std::vector<Content>& contents = contents_[allocation];
  const auto found = std::find_if(contents.rbegin(), contents.rend(), [&](const Content& content) {
    return content.version == version && is_same_counter(content.counter, counter);
  });
  if (found != contents.rend()) return static_cast<std::uint32_t>(contents.rend() - found - 1);
  contents.push_back({counter, version});
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
  const Shell shell = saved_[tensor].shell;  // the scheduler may let go of it
  TORCH_CHECK(shell.defined(), kAskedAgain, tensor);
  check_version(saved_[tensor]);
  if (wants_node_ends_) watch_node_end();
  if (listener_ != nullptr) listener_->on_unpack(tensor);
  scheduled([&] { ask_scheduler_for(tensor, shell); });
  if (wants_node_ends_) node_tensors_.push_back(tensor);
  const CopyId copy = saved_[tensor].copy;
  TORCH_CHECK(
      copy < 0 || copies_[copy].device_storage.unsafeGetStorageImpl() != no_storage_.unsafeGetStorageImpl(),
      kAskedAgain, tensor);
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
                 shell->sizes(), ", cannot be brought back for backward: there is no device memory for its ",
                 copies_[saved_[tensor].copy].bytes,
                 " bytes, and nothing is left to let go of (a smaller prefetch window or batch, or more "
                 "tensors offloaded, leave more room): ",
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

at::Tensor OffloadStep::restore(const Shell& shell, const DeviceCopy& copy) const {
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
    // Only the copy itself holds the storage now, unless something that backward made shares it.
    const bool escapes = copy >= 0 && copies_[copy].reloaded && copies_[copy].device_storage.use_count() > 1;
    if (escapes) node_escaped_.push_back(tensor);
  }
  if (listener_ != nullptr) listener_->on_node_end(node_tensors_, node_escaped_);
  scheduled([&] { scheduler_->node_end(node_tensors_, node_escaped_); });
  node_tensors_.clear();
}

void OffloadStep::backward_end() {
  const HookScope scope(*this);
  if (listener_ != nullptr) listener_->on_backward_end();
  scheduled([&] { scheduler_->backward_end(); });
}

void OffloadStep::release(SavedId tensor) noexcept {
  const HookScope scope(*this);
  if (listener_ != nullptr) listener_->on_release(tensor);
  try {
    if (!failure_) scheduled([&] { scheduler_->release(tensor); });
  } catch (...) {
    // It is known: see failure_. Autograd lets go of tensors in destructors.
  }
  saved_[tensor].shell.reset();
}

void OffloadStep::execute(const Command& command) {
  commands_.push_back(command);
  if (listener_ == nullptr) return run(command);
  listener_->on_command_begin(command);
  const Device::TimeMark begin = device_.mark();
  run(command);
  listener_->on_command(command, begin, device_.mark());
}

/// Memory is all that is tried: with it, the copy in is as any.
bool OffloadStep::try_execute(const Command& command) {
  OFFPROF_CHECK(command.kind == CommandKind::kCopyIn);
  try {
    reload_memory_ = device_.allocate(command.bytes);
  } catch (const c10::OutOfMemoryError&) {
    device_.take_out_of_memory();  // the step goes on: nobody is to find it later
    ++refused_reloads_;
    return false;
  }
  execute(command);
  return true;
}

void OffloadStep::run(const Command& command) {
  switch (command.kind) {
    case CommandKind::kKeep:
      return;  // its shell holds it
    case CommandKind::kLetGo:
      saved_[command.tensor].shell.reset();
      return;
    case CommandKind::kCopyOut:
      return copy_out(command);
    case CommandKind::kCopyIn:
      return copy_in(command);
    case CommandKind::kWaitOut:
    case CommandKind::kWaitIn:
      return device_.wait(copies_[command.copy].queue, copies_[command.copy].event);
    case CommandKind::kDrop:
      copies_[command.copy].device_storage = no_storage_;
      return;
    case CommandKind::kFreeHost:
      device_.free_host(std::exchange(copies_[command.copy].host, nullptr), command.bytes);
      host_bytes_ -= command.bytes;
      return;
  }
}

void OffloadStep::copy_out(const Command& command) {
  OFFPROF_CHECK(command.copy == static_cast<CopyId>(copies_.size()));
  const at::Tensor value(saved_[command.tensor].shell);
  std::byte* host = device_.allocate_host(command.bytes);
  DeviceCopy& copy = copies_.emplace_back();  // first, so that whatever throws after it leaves nothing behind
  copy.tensor = command.tensor;
  copy.host = host;
  copy.bytes = command.bytes;
  copy.device_storage = value.storage();
  if (listener_ != nullptr)
    if (const auto allocation = device_.allocation_of(copy.device_storage))
      listener_->on_hold(command.copy, *allocation, copy.device_storage);
  copy.event = queue_copy_out(value, command.copy);
  d2h_bytes_ += command.bytes;
  host_bytes_ += command.bytes;
  host_peak_bytes_ = std::max(host_peak_bytes_, host_bytes_);
}

Device::Event OffloadStep::queue_copy_out(const at::Tensor& value, CopyId id) {
  const DeviceCopy& copy = copies_[id];
  if (copies_tensors_ && !is_dense(value)) {
    const Shell source = shell_of(value);
    strip_lazy_marks(*source);
    return device_.copy_out_densely(copy.queue, at::Tensor(source), copy.host, id);
  }
  const void* from = copies_tensors_ ? value.const_data_ptr() : value.storage().data();
  return device_.copy(copy.queue, {copy.host, from, copy.bytes, CopyDirection::kD2h, id});
}

void OffloadStep::copy_in(const Command& command) {
  DeviceCopy& copy = copies_[command.copy];
  copy.device_storage =
      reload_memory_ ? *std::exchange(reload_memory_, std::nullopt) : device_.allocate(command.bytes);
  copy.reloaded = true;
  const std::optional<AllocationId> allocation = device_.allocation_of(copy.device_storage);
  if (listener_ != nullptr && allocation) listener_->on_reload(command.copy, *allocation);
  copy.event = device_.copy(reload_queue_, {copy.device_storage.mutable_data(), copy.host, command.bytes,
                                            CopyDirection::kH2d, command.copy});
  copy.queue = reload_queue_;  // an event is one of its queue: had the copy failed, neither would be new
  h2d_bytes_ += command.bytes;
}

}  // namespace offprof
