#include "simulator/replay/virtual_executor.h"

#include <algorithm>
#include <utility>

#include "traces/base/check.h"

namespace offprof {

void VirtualExecutor::execute(const Command& command) {
  if (listener_ != nullptr) listener_->on_command(command, clock_.now());
  std::visit([this](const auto& each) { run(each); }, command);
}

void VirtualExecutor::take_host(Bytes bytes) {
  host_bytes_ += bytes;
  host_peak_bytes_ = std::max(host_peak_bytes_, host_bytes_);
}

void VirtualExecutor::run(const WriteDisk& command) {
  const VirtualClock::Copy& written = disk_.write(command, copies_[command.copy].last_copy.end, clock_);
  if (listener_ != nullptr) listener_->on_disk_transfer(command, written);
}

void VirtualExecutor::run(const ReadDisk& command) {
  take_host(command.bytes);
  const VirtualClock::Copy& read = disk_.read(command, clock_);
  if (listener_ != nullptr) listener_->on_disk_transfer(command, read);
}

void VirtualExecutor::wait_for_disk(const VirtualClock::Copy& transfer, SavedId tensor) {
  const Nanoseconds before = clock_.now();
  const Nanoseconds stood = clock_.wait_for_disk(transfer);
  if (listener_ == nullptr || stood == 0) return;
  listener_->on_stall({StallReason::kDisk, tensor, transfer.bytes, before, stood, transfer.track});
}

void VirtualExecutor::run(const CopyOut& command) {
  if (copies_tensors_) stage(command.tensor);
  const VirtualClock::Copy copy = clock_.copy_out(command.bytes);
  if (command.copy == static_cast<CopyId>(copies_.size())) {  // it was not encoded before
    copies_.push_back({command.tensor, own_storage(command.tensor), copy});
    memory_.hold(copies_.back().device_storage);
  }
  copies_[command.copy].last_copy = copy;
  d2h_bytes_ += command.bytes;
  take_host(command.bytes);
  if (listener_ != nullptr) listener_->on_copy(command, copy);
}

void VirtualExecutor::stage(SavedId tensor) {
  const Bytes bytes = step_.staging_bytes(tensor);
  if (bytes == 0) return;
  memory_.pass(bytes);
  clock_.stage(step_.staging_work(tensor));
  if (listener_ != nullptr) listener_->on_staging(bytes);
}

void VirtualExecutor::run(const CopyIn& command) {
  DeviceCopy& copy = copies_[command.copy];
  copy.device_storage = memory_.allocate(command.bytes);
  copy.last_copy = clock_.copy_in(command.bytes, disk_.ready(command.copy));
  h2d_bytes_ += command.bytes;
  if (listener_ != nullptr) listener_->on_copy(command, copy.last_copy);
}

void VirtualExecutor::run(const Encode& command) {
  OFFPROF_CHECK(command.copy == static_cast<CopyId>(copies_.size()));
  copies_.push_back({command.tensor, use(cost_of(command.tensor).encode), {}});
}

void VirtualExecutor::run(const Decode& command) {
  DeviceCopy& copy = copies_[command.copy];
  const std::int32_t encoded = std::exchange(copy.device_storage, use(cost_of(copy.tensor).decode));
  memory_.free_unpacked(encoded);
}

void VirtualExecutor::run(const DropForRecompute& command) {
  OFFPROF_CHECK(command.copy == static_cast<CopyId>(copies_.size()));
  copies_.push_back({command.tensor, -1, {}});
}

void VirtualExecutor::run(const Recompute& command) {
  const RuledPlacement placement = rule(command.tensor);
  OFFPROF_CHECK(placement && placement->recomputation != nullptr);
  copies_[command.copy].device_storage = use(placement->recomputation->use);
}

const TransformCost& VirtualExecutor::cost_of(SavedId tensor) const {
  const RuledPlacement placement = rule(tensor);
  OFFPROF_CHECK(placement && placement->cost != nullptr);
  return *placement->cost;
}

/// Adds the memory and time of an encode, a decode or a recompute. Returns the resulting storage.
std::int32_t VirtualExecutor::use(const TransformUse& use) {
  std::vector<std::int32_t> allocated;
  for (const TransformMemory& step : use.memory) {
    if (step.bytes > 0) {
      allocated.push_back(memory_.allocate(step.bytes));
    } else {
      memory_.free_unpacked(std::exchange(allocated[step.freed], -1));
    }
  }
  if (step_.work().empty())
    clock_.compute(use.compute_ns);
  else
    clock_.run(use.work);
  const auto result = std::ranges::find_if(allocated, [](std::int32_t storage) { return storage >= 0; });
  OFFPROF_CHECK(result != allocated.end());
  return *result;
}

void VirtualExecutor::run(const WaitOut& command) {
  wait(copies_[command.copy].last_copy, reason_to_wait_out(command.tensor), command.tensor);
}

void VirtualExecutor::run(const WaitIn& command) {
  const bool is_released = event_ == EventKind::kRelease;
  wait(copies_[command.copy].last_copy, is_released ? StallReason::kReleased : StallReason::kReloadLate,
       command.tensor);
}

void VirtualExecutor::wait(const VirtualClock::Copy& copy, StallReason reason, SavedId tensor) {
  const Nanoseconds before = clock_.now();
  const VirtualClock::Wait stood = clock_.wait(copy);
  if (listener_ == nullptr) return;
  const auto tell = [&](StallReason why, Nanoseconds begin, Nanoseconds duration) {
    if (duration > 0) listener_->on_stall({why, tensor, copy.bytes, begin, duration, copy.track});
  };
  const Nanoseconds read = before + stood.for_disk;
  tell(StallReason::kDisk, before, stood.for_disk);
  tell(StallReason::kLink, read, stood.for_link);
  tell(reason, read + stood.for_link, stood.for_transfer);
}

void VirtualExecutor::fetch_parameters(std::int32_t storage) {
  const Bytes bytes = step_.storage_bytes()[storage];
  Nanoseconds ready = 0;
  if (step_.parameters_are_on_disk()) {
    const VirtualClock::Copy read = disk_.read_weights(bytes, clock_);
    if (listener_ != nullptr) listener_->on_parameter_copy(read);
    ready = read.end;
  }
  const VirtualClock::Copy copy = fetches_[storage] = clock_.fetch(bytes, ready);
  h2d_bytes_ += bytes;
  if (listener_ != nullptr) listener_->on_parameter_copy(copy);
}

void VirtualExecutor::save_parameters(std::int32_t storage) {
  const Bytes bytes = step_.storage_bytes()[storage];
  const VirtualClock::Copy copy = clock_.copy_out(bytes);
  d2h_bytes_ += bytes;
  if (listener_ != nullptr) listener_->on_parameter_copy(copy);
  wait(copy, StallReason::kParameters, -1);
  if (!step_.parameters_are_on_disk()) return;
  const VirtualClock::Copy written = disk_.write_weights(bytes, copy.end, clock_);
  if (listener_ != nullptr) listener_->on_parameter_copy(written);
  wait_for_disk(written, -1);
}

StallReason VirtualExecutor::reason_to_wait_out(SavedId tensor) const {
  if (event_ == EventKind::kRelease) return StallReason::kReleased;
  if (event_ != EventKind::kPack) return StallReason::kStashEmptied;
  return tensor == event_id_ ? StallReason::kNoStash : StallReason::kStashFull;
}

}  // namespace offprof
