#include "engine/autograd/step_executor.h"

#include <c10/util/Exception.h>

#include <optional>

namespace offprof {

StepExecutor::StepExecutor(Device& device, const Policy& policy, const StepGuide& guide,
                           StepListener* listener)
    : device_(device),
      guide_(guide),
      listener_(listener),
      copies_tensors_(traits_of(policy.scheduler).copies_tensors),
      copies_(device, copies_tensors_, has_one_copy_stream(policy) ? CopyQueue::kD2h : CopyQueue::kH2d),
      recompute_(guide, device.torch_device(), held_, copies_) {}

SavedId StepExecutor::hold(const at::Tensor& value, bool is_variable) {
  held_.emplace_back(value, is_variable);
  return static_cast<SavedId>(held_.size() - 1);
}

void StepExecutor::hand_over(SavedId tensor, CopyId copy) {
  held_[tensor].copy = copy;
  held_[tensor].shell->set_storage_keep_dtype(copies_.no_storage());
}

at::Tensor StepExecutor::restore(SavedId tensor, const Shell& shell) const {
  if (held_[tensor].copy < 0) return at::Tensor(shell);
  const StepCopies::Copy& copy = copies_[held_[tensor].copy];
  return with_storage(shell, copy.device_storage, copies_tensors_ && copy.reloaded);
}

/// Returns the number of holders of the storage that the tensor was reloaded to; 0: there is no such storage.
std::size_t StepExecutor::reload_use_count(SavedId tensor) const {
  const CopyId copy = held_[tensor].copy;
  return copy >= 0 && copies_[copy].reloaded ? copies_[copy].device_storage.use_count() : 0;
}

void StepExecutor::execute(const Command& command) {
  const auto run_it = [&] { std::visit([this](const auto& each) { run(each); }, command); };
  commands_.push_back(command);
  if (listener_ == nullptr) return run_it();
  listener_->on_command_begin(command);
  const Device::TimeMark begin = device_.mark();
  run_it();
  listener_->on_command(command, begin, device_.mark());
}

/// Tries only the allocation: once it succeeds, the command is like any other.
bool StepExecutor::try_execute(const RefusableCommand& command) {
  if (!std::visit([this](const auto& each) { return take(each); }, command)) return false;
  execute(as_command(command));
  return true;
}

bool StepExecutor::take(const OneOf<CopyIn, Decode, Recompute> auto& command) {
  try {
    take_memory_for(command);
    return true;
  } catch (const c10::OutOfMemoryError&) {
    device_.take_out_of_memory();  // the step continues, so no later caller may find this refusal
    ++refused_reloads_;
    return false;
  }
}

void StepExecutor::run(const CopyOut& command) {
  copies_.run(command, packed(command.tensor));
  report_hold(command.copy);
}

void StepExecutor::run(const Encode& command) {
  copies_.run(command, packed(command.tensor), guide_.transforms[command.transform]);
}

void StepExecutor::run(const OneOf<CopyIn, Decode> auto& command) {
  copies_.run(command);
  report_reload(command.copy);
}

void StepExecutor::run(const DropForRecompute& command) {
  recompute_.drop(command);
  copies_.run(command);
}

void StepExecutor::run(const Recompute& command) {
  copies_.run(command, [&] { return recompute_.recompute(command); });
  recompute_.finish(command);
  report_reload(command.copy);
}

void StepExecutor::report_hold(CopyId copy) {
  if (listener_ == nullptr) return;
  const c10::Storage& storage = copies_[copy].device_storage;
  const std::optional<AllocationId> allocation = device_.allocation_of(storage);
  if (allocation) listener_->on_hold(copy, *allocation, storage);
}

void StepExecutor::report_reload(CopyId copy) {
  if (listener_ == nullptr) return;
  const std::optional<AllocationId> allocation = device_.allocation_of(copies_[copy].device_storage);
  if (allocation) listener_->on_reload(copy, *allocation);
}

}  // namespace offprof
