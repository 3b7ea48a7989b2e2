#include "engine/devices/disk/step_disk_copies.h"

#include <algorithm>
#include <utility>

#include "traces/base/error.h"

namespace offprof {

StepDiskCopies::~StepDiskCopies() {
  late_reads_.settle();
  for (const Copy& copy : copies_)
    if (copy.extent) disk_->release(*copy.extent);
}

bool StepDiskCopies::take(const TakeDisk& command) {
  if (disk_ == nullptr)
    throw input_error("the policy places tensors on a disk, but no disk was given",
                      "Give a folder: --disk DIR");
  const auto extent = disk_->reserve(command.bytes, nullptr);
  if (!extent) {
    ++refusals_;
    return false;
  }
  if (!knows(command.copy)) copies_.resize(static_cast<std::size_t>(command.copy) + 1);
  at(command.copy).extent = extent;
  used_bytes_ += command.bytes;
  peak_bytes_ = std::max(peak_bytes_, used_bytes_);
  return true;
}

void StepDiskCopies::write(const WriteDisk& command, const std::byte* from, CopyQueue queue) {
  Copy& copy = at(command.copy);
  copy.transfer = disk_->write(*copy.extent, from, command.bytes, queue, command.copy);
  write_bytes_ += command.bytes;
}

void StepDiskCopies::read(const ReadDisk& command, std::byte* to) {
  Copy& copy = at(command.copy);
  copy.transfer = disk_->read(*copy.extent, to, command.bytes, command.copy);
  copy.was_read = true;
  read_bytes_ += command.bytes;
}

void StepDiskCopies::hold_for_read(CopyId copy, CopyQueue queue) {
  if (knows(copy) && at(copy).was_read) disk_->hold(queue, at(copy).transfer);
}

void StepDiskCopies::check_read(CopyId copy) {
  if (!knows(copy) || !at(copy).was_read) return;
  late_reads_.check(at(copy).transfer);
  if (reads_are_finished_) late_reads_.finish();
}

void StepDiskCopies::finish_reads() {
  reads_are_finished_ = true;
  late_reads_.finish();
}

void StepDiskCopies::free(const FreeDisk& command) {
  Copy& copy = at(command.copy);
  disk_->release(*std::exchange(copy.extent, std::nullopt));
  copy.transfer = nullptr;
  copy.was_read = false;
  used_bytes_ -= command.bytes;
}

void StepDiskCopies::settle(CopyId copy) noexcept {
  if (knows(copy) && at(copy).transfer != nullptr) offprof::settle(*disk_, at(copy).transfer);
}

}  // namespace offprof
