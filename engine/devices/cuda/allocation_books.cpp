#include "engine/devices/cuda/allocation_books.h"

#include <c10/cuda/CUDACachingAllocator.h>

#include <algorithm>
#include <map>
#include <utility>

#include "engine/torch/torch_compat.h"

namespace offprof {
namespace {

using c10::CachingDeviceAllocator::TraceEntry;

const void* address_of(const TraceEntry& entry) {
  return reinterpret_cast<const void*>(entry.addr_);
}

}  // namespace

AllocationBooks& AllocationBooks::of_device(c10::DeviceIndex device, Bytes device_bytes) {
  // The books and the list of them outlive every tensor, even static ones.
  static auto& books = *new std::map<c10::DeviceIndex, AllocationBooks*>;
  AllocationBooks*& found = books[device];
  if (found == nullptr) found = new AllocationBooks(device, device_bytes);
  return *found;
}

AllocationBooks::AllocationBooks(c10::DeviceIndex device, Bytes device_bytes) : ranges_(device_bytes) {
  namespace allocator = c10::cuda::CUDACachingAllocator;
  // The callback runs with the allocator's lock held, so nothing in it may call the allocator.
  allocator::attachAllocatorTraceTracker([this, device](const TraceEntry& entry) {
    if (entry.device_ != device) return;
    const bool is_free = entry.action_ == TraceEntry::FREE_COMPLETED;
    tell_requested_free(is_free ? address_of(entry) : nullptr);
    const auto bytes = static_cast<Bytes>(entry.size_);
    switch (entry.action_) {
      case TraceEntry::ALLOC:
        return on_alloc(address_of(entry), bytes, entry.stream_);
      case TraceEntry::FREE_REQUESTED:
        return on_free_requested(address_of(entry));
      case TraceEntry::FREE_COMPLETED:
        return on_free(address_of(entry));
      case TraceEntry::SEGMENT_ALLOC:
        return on_reserved(bytes);
      case TraceEntry::SEGMENT_FREE:
        return on_reserved(-bytes);
      case TraceEntry::SEGMENT_MAP:
        return on_mapped(entry.addr_, bytes);
      case TraceEntry::SEGMENT_UNMAP:
        return on_unmapped(entry.addr_, bytes);
      default:
        return;
    }
  });
  const auto on_refusal = [this, device](std::int64_t refused_on, std::size_t asked, std::size_t,
                                         std::size_t) {
    if (refused_on != device) return;
    const std::lock_guard lock(mutex_);
    out_of_memory_ = {static_cast<Bytes>(asked), live_bytes_, capacity_};
  };
  allocator::attachOutOfMemoryObserver(on_refusal);
  attach_early_refusal_observer(*allocator::get(), on_refusal);
  enter_older_blocks(device);
}

void AllocationBooks::enter_older_blocks(c10::DeviceIndex device) {
  const auto snapshot = c10::cuda::CUDACachingAllocator::snapshot(
      {0, 0}, /*include_traces=*/false);  // takes the allocator's lock
  const std::lock_guard lock(mutex_);
  for (const auto& segment : snapshot.segments) {
    if (segment.device != device) continue;
    reserved_bytes_ += static_cast<Bytes>(segment.total_size);
    std::size_t address = segment.address;
    for (const auto& block : segment.blocks) {
      const auto bytes = static_cast<Bytes>(block.requested_size);
      if (block.allocated &&
          live_.try_emplace(reinterpret_cast<const void*>(address), Live{next_id_, bytes, segment.stream})
              .second) {
        ++next_id_;
        live_bytes_ += bytes;
      }
      address += block.size;
    }
  }
  peak_bytes_ = live_bytes_;
}

void AllocationBooks::on_alloc(const void* block, Bytes bytes, void* stream) {
  const std::lock_guard lock(mutex_);
  const AllocationId id = next_id_++;
  live_[block] = {id, bytes, stream};
  live_bytes_ += bytes;
  peak_bytes_ = std::max(peak_bytes_, live_bytes_);
  const std::int32_t number = number_of_locked(stream);
  if (number >= kFirstOtherStream) saw_other_stream_ = true;
  if (watcher_ != nullptr) watcher_->block_allocated(block, bytes, stream);
  if (listener_ != nullptr) listener_->on_alloc(id, bytes, number);
}

void AllocationBooks::on_free_requested(const void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(block);
  if (found == live_.end()) return;
  found->second.is_requested = true;
  requested_ = block;
  if (watcher_ != nullptr) watcher_->free_requested();
}

/// Tells the listener of the last free that was requested. If it is that of the block that is freed now,
/// tells only if the block waited for other streams, which may take longer in another step.
void AllocationBooks::tell_requested_free(const void* freed) {
  const std::lock_guard lock(mutex_);
  if (requested_ == nullptr) return;
  const void* const requested = std::exchange(requested_, nullptr);
  std::vector<std::int32_t> points;
  if (watcher_ != nullptr) points = watcher_->take_free_points();
  if (requested == freed && points.empty()) return;
  if (listener_ != nullptr) listener_->on_free_requested(live_.at(requested).id, points);
}

bool AllocationBooks::has_requested_frees() const {
  const std::lock_guard lock(mutex_);
  return std::ranges::any_of(live_, [](const auto& entry) { return entry.second.is_requested; });
}

void AllocationBooks::on_free(const void* block) {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(block);
  if (found == live_.end()) return;  // allocated before the books existed
  const Live freed = found->second;
  live_.erase(found);
  live_bytes_ -= freed.bytes;
  if (watcher_ != nullptr) watcher_->block_freed(block);
  if (listener_ != nullptr) listener_->on_free(freed.id, freed.bytes, number_of_locked(freed.stream));
}

void AllocationBooks::on_reserved(Bytes change) {
  const std::lock_guard lock(mutex_);
  reserved_bytes_ += change;
  if (listener_ != nullptr) listener_->on_reserved(reserved_bytes_);
}

void AllocationBooks::on_mapped(std::uintptr_t piece, Bytes bytes) {
  {
    const std::lock_guard lock(mutex_);
    ranges_.map(piece, bytes);
  }
  on_reserved(bytes);
}

void AllocationBooks::on_unmapped(std::uintptr_t piece, Bytes bytes) {
  {
    const std::lock_guard lock(mutex_);
    ranges_.unmap(piece, bytes);
  }
  on_reserved(-bytes);
}

std::optional<std::uintptr_t> AllocationBooks::range_begin(std::uintptr_t piece) const {
  const std::lock_guard lock(mutex_);
  return ranges_.begin_of(piece);
}

std::optional<AllocationId> AllocationBooks::id_of(const c10::Storage& storage) const {
  if (storage.nbytes() == 0 || storage.device_type() != c10::DeviceType::CUDA) return std::nullopt;
  return id_at(storage.data_ptr().get_context());
}

std::optional<AllocationId> AllocationBooks::id_at(const void* address) const {
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(address);
  return found == live_.end() ? std::nullopt : std::optional(found->second.id);
}

AllocationId AllocationBooks::next_id() const {
  const std::lock_guard lock(mutex_);
  return next_id_;
}

Bytes AllocationBooks::live_bytes() const {
  const std::lock_guard lock(mutex_);
  return live_bytes_;
}

Bytes AllocationBooks::peak_bytes() const {
  const std::lock_guard lock(mutex_);
  return peak_bytes_;
}

Bytes AllocationBooks::reserved_bytes() const {
  const std::lock_guard lock(mutex_);
  return reserved_bytes_;
}

void AllocationBooks::reset_peak() {
  const std::lock_guard lock(mutex_);
  peak_bytes_ = live_bytes_;
}

std::optional<OutOfMemory> AllocationBooks::take_out_of_memory() {
  const std::lock_guard lock(mutex_);
  return std::exchange(out_of_memory_, std::nullopt);
}

void AllocationBooks::set_listener(AllocationListener* listener) {
  const std::lock_guard lock(mutex_);
  listener_ = listener;
  requested_ = nullptr;
}

void AllocationBooks::set_watcher(GpuBlocks* watcher) {
  const std::lock_guard lock(mutex_);
  watcher_ = watcher;
}

void AllocationBooks::set_capacity(std::optional<Bytes> bytes) {
  const std::lock_guard lock(mutex_);
  capacity_ = bytes;
}

void AllocationBooks::number_streams(std::vector<void*> streams) {
  const std::lock_guard lock(mutex_);
  streams_ = std::move(streams);
  saw_other_stream_ = false;
}

std::int32_t AllocationBooks::number_of_locked(void* stream) {
  const auto found = std::ranges::find(streams_, stream);
  const auto number = static_cast<std::int32_t>(found - streams_.begin());
  if (found == streams_.end()) streams_.push_back(stream);
  return number;
}

std::int32_t AllocationBooks::number_of(void* stream) {
  const std::lock_guard lock(mutex_);
  return number_of_locked(stream);
}

std::int32_t AllocationBooks::stream_of(const c10::Storage& storage) const {
  if (storage.nbytes() == 0 || storage.device_type() != c10::DeviceType::CUDA) return kComputeStream;
  const std::lock_guard lock(mutex_);
  const auto found = live_.find(storage.data_ptr().get_context());
  if (found == live_.end()) return kComputeStream;
  const auto stream = std::ranges::find(streams_, found->second.stream);
  return static_cast<std::int32_t>(stream - streams_.begin());
}

bool AllocationBooks::saw_other_stream() const {
  return saw_other_stream_;
}

}  // namespace offprof
