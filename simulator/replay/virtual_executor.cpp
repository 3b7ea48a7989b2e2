#include "simulator/replay/virtual_executor.h"

#include <algorithm>
#include <utility>

#include "traces/base/check.h"

namespace offprof {

void VirtualExecutor::execute(const Command& command) {
  if (listener_ != nullptr) listener_->on_command(command, clock_.now());
  std::visit([this](const auto& each) { run(each); }, command);
}

/// Runs the command as it is if nobody listens, as in most replays: only a listener needs a Command.
bool VirtualExecutor::try_execute(const RefusableCommand& command) {
  if (listener_ != nullptr) return Executor::try_execute(command);
  std::visit([this](const auto& each) { run(each); }, command);
  return true;
}

Bytes VirtualExecutor::resident_bytes(const Step& step, const CarriedMemory& carried) {
  Bytes bytes = step.resident_bytes();
  if (!step.carries_tensors()) return bytes;
  for (std::size_t i = 0; i < step.renewals().size(); ++i)
    if (!step.renewals()[i].is_programs && !carried.is_held[i])
      bytes -= step.storage_bytes()[step.renewals()[i].old_storage];
  for (const CarriedCopy& copy : carried.copies) bytes += copy.device_bytes;
  return bytes;
}

void VirtualExecutor::begin_with(const CarriedMemory& carried) {
  for (std::size_t i = 0; i < step_.renewals().size(); ++i) {
    const Step::StepRenewal& renewal = step_.renewals()[i];
    const int holders = (renewal.is_programs ? 1 : 0) + (carried.is_held[i] ? 1 : 0);
    older_holds_[renewal.old_storage] = holders;
    if (holders > 1) memory_.hold_resident(renewal.old_storage);
    if (holders > 0) continue;
    memory_.remove_resident(renewal.old_storage);
    if (listener_ != nullptr) listener_->on_absent(renewal.old_storage);
  }
  for (const CarriedCopy& copy : carried.copies) {
    OlderCopy older{.storage = step_.renewals()[copy.renewal].old_storage, .host_bytes = copy.host_bytes};
    if (copy.storage >= 0) {
      older.device_storage = memory_.add_resident(copy.device_bytes);
      if (listener_ != nullptr) listener_->on_carried(copy, older.device_storage);
    }
    older_host_bytes_ += copy.host_bytes;
    older_copies_.push_back(older);
  }
  host_bytes_ = host_peak_bytes_ = older_host_bytes_;
}

void VirtualExecutor::let_go(std::int32_t storage) {
  --older_holds_[storage];
  memory_.free_unpacked(storage);
}

void VirtualExecutor::free_older(std::int32_t storage) {
  const auto holds = older_holds_.find(storage);
  if (holds == older_holds_.end()) return memory_.free_unpacked(storage);  // its successor is not known
  while (holds->second > 0) let_go(storage);
  for (const OlderCopy& copy : older_copies_) {
    if (copy.storage != storage) continue;
    if (copy.device_storage >= 0) memory_.free_unpacked(copy.device_storage);
    older_host_bytes_ -= copy.host_bytes;
    host_bytes_ -= copy.host_bytes;
  }
}

CarriedMemory VirtualExecutor::carried() const {
  CarriedMemory carried;
  if (!step_.carries_tensors()) return carried;
  std::unordered_map<std::int32_t, std::int32_t> renewal_of;  // by new storage
  for (const Step::StepRenewal& renewal : step_.renewals()) {
    renewal_of.emplace(renewal.new_storage, static_cast<std::int32_t>(carried.is_held.size()));
    const int of_program = renewal.is_programs ? 1 : 0;
    carried.is_held.push_back(memory_.holders(renewal.new_storage) > of_program ? 1 : 0);
  }
  for (const DeviceCopy& copy : copies_) {
    const auto found = renewal_of.find(own_storage(copy.tensor));
    if (found == renewal_of.end()) continue;
    CarriedCopy left{.renewal = found->second, .host_bytes = copy.host_bytes};
    const bool is_elsewhere = copy.device_storage >= 0 && copy.device_storage != own_storage(copy.tensor);
    if (is_elsewhere && memory_.is_live(copy.device_storage)) {
      left.storage = copy.device_storage;
      left.device_bytes = memory_.bytes(copy.device_storage);
    }
    if (left.storage >= 0 || left.host_bytes > 0) carried.copies.push_back(left);
  }
  return carried;
}

void VirtualExecutor::take_host(CopyId copy, Bytes bytes) {
  copies_[copy].host_bytes = bytes;
  host_bytes_ += bytes;
  host_peak_bytes_ = std::max(host_peak_bytes_, host_bytes_);
}

void VirtualExecutor::run(const WriteDisk& command) {
  const VirtualClock::Copy& written = disk_.write(command, copies_[command.copy].last_copy.end, clock_);
  if (listener_ != nullptr) listener_->on_disk_transfer(command, written);
}

void VirtualExecutor::run(const ReadDisk& command) {
  take_host(command.copy, command.bytes);
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
  take_host(command.copy, command.bytes);
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
