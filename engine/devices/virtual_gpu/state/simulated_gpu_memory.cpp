#include "engine/devices/virtual_gpu/state/simulated_gpu.h"

namespace offprof {
namespace {

GpuStatus valid_or_not(bool valid) {
  return valid ? GpuStatus::kOk : GpuStatus::kInvalidValue;
}

}  // namespace

void SimulatedGpu::set_memory_limit(Bytes bytes) {
  const Lock lock(mutex_);
  memory_.set_limit(bytes);
}

Bytes SimulatedGpu::used_bytes() const {
  const Lock lock(mutex_);
  return memory_.used_bytes();
}

Bytes SimulatedGpu::memory_limit() const {
  const Lock lock(mutex_);
  return memory_.limit_bytes();
}

GpuStatus SimulatedGpu::allocate(void** address, Bytes bytes) {
  const Lock lock(mutex_);
  if (bytes < 0) return GpuStatus::kOutOfMemory;
  void* begin = bytes == 0 ? nullptr : memory_.allocate(bytes);
  if (begin == nullptr && bytes > 0) return GpuStatus::kOutOfMemory;
  if (bytes > 0) tell_memory(MemoryPlace::kDevice, begin, memory_.find(begin)->bytes);
  *address = begin;
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::free(void* address) {
  if (address == nullptr) return GpuStatus::kOk;
  const Lock lock(mutex_);
  const auto around = memory_.find(address);
  if (!around || around->begin != address) return GpuStatus::kInvalidValue;
  wait_for_device();
  const auto freed = memory_.free(address);
  if (freed) tell_memory(MemoryPlace::kDevice, freed->begin, -freed->bytes);
  if (freed && order_) order_->segment_freed(freed->begin, freed->bytes);
  return valid_or_not(freed.has_value());
}

void SimulatedGpu::tell_memory(MemoryPlace place, const void* address, Bytes bytes) const {
  if (GpuObserver* told = observer()) told->on_memory(place, address, bytes, time_.host_time());
}

AddressInfo SimulatedGpu::describe(const void* address) const {
  const Lock lock(mutex_);
  if (const auto device = memory_.find(address)) return {MemoryPlace::kDevice, *device};
  if (const auto pinned = pinned_.find(address)) return {MemoryPlace::kPinned, *pinned};
  return {};
}

MemoryPlace SimulatedGpu::place_of(const void* address) const {
  if (memory_.find(address)) return MemoryPlace::kDevice;
  return pinned_.find(address) ? MemoryPlace::kPinned : MemoryPlace::kPageable;
}

GpuStatus SimulatedGpu::reserve_addresses(void** address, Bytes bytes) {
  const Lock lock(mutex_);
  void* begin = memory_.reserve(bytes);
  if (begin == nullptr) return GpuStatus::kInvalidValue;
  *address = begin;
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::release_addresses(void* address, Bytes bytes) {
  const Lock lock(mutex_);
  return valid_or_not(memory_.release_reservation(address, bytes));
}

GpuStatus SimulatedGpu::create_memory(AddressSpace::Handle* handle, Bytes bytes) {
  const Lock lock(mutex_);
  if (bytes <= 0 || bytes % AddressSpace::kGranule != 0) return GpuStatus::kInvalidValue;
  const auto created = memory_.create(bytes);
  if (!created) return GpuStatus::kOutOfMemory;
  *handle = *created;
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::release_memory(AddressSpace::Handle handle) {
  const Lock lock(mutex_);
  return valid_or_not(memory_.release(handle));
}

GpuStatus SimulatedGpu::retain_memory(AddressSpace::Handle* handle, const void* address) {
  const Lock lock(mutex_);
  const auto retained = memory_.retain(address);
  if (retained) *handle = *retained;
  return valid_or_not(retained.has_value());
}

GpuStatus SimulatedGpu::map_memory(void* address, Bytes bytes, AddressSpace::Handle handle) {
  const Lock lock(mutex_);
  return valid_or_not(memory_.map(address, bytes, handle));
}

GpuStatus SimulatedGpu::unmap_memory(void* address, Bytes bytes) {
  const Lock lock(mutex_);
  if (!memory_.is_mapped(address, bytes)) return GpuStatus::kInvalidValue;
  if (order_) order_->segment_unmapped(address, bytes);
  // Queued copies still need the real memory, so run them first. The checker has already reported this
  // hazard.
  if (functional_mode_) functional_mode_->synchronise_device();
  return valid_or_not(memory_.unmap(address, bytes));
}

GpuStatus SimulatedGpu::set_access(const void* address, Bytes bytes) const {
  const Lock lock(mutex_);
  return valid_or_not(memory_.is_mapped(address, bytes));
}

GpuStatus SimulatedGpu::allocate_pinned(void** address, Bytes bytes) {
  const Lock lock(mutex_);
  void* begin = bytes == 0 ? nullptr : pinned_.allocate(bytes);
  if (begin == nullptr && bytes != 0) return GpuStatus::kOutOfMemory;
  if (bytes > 0) tell_memory(MemoryPlace::kPinned, begin, pinned_.find(begin)->bytes);
  *address = begin;
  return GpuStatus::kOk;
}

GpuStatus SimulatedGpu::free_pinned(void* address) {
  if (address == nullptr) return GpuStatus::kOk;
  const Lock lock(mutex_);
  const auto around = pinned_.find(address);
  if (!around || around->begin != address) return GpuStatus::kInvalidValue;
  if (order_) order_->pinned_freed(around->begin, around->bytes);
  wait_for_device();
  tell_memory(MemoryPlace::kPinned, around->begin, -around->bytes);
  return valid_or_not(pinned_.free(address).has_value());
}

GpuStatus SimulatedGpu::pin(void* address, Bytes bytes) {
  const Lock lock(mutex_);
  if (address == nullptr || bytes <= 0) return GpuStatus::kInvalidValue;
  return pinned_.register_range(address, bytes) ? GpuStatus::kOk : GpuStatus::kHostRangePinned;
}

GpuStatus SimulatedGpu::unpin(void* address) {
  const Lock lock(mutex_);
  const auto range = pinned_.find(address);
  if (!range || range->begin != address) return GpuStatus::kHostRangeNotPinned;
  if (order_) order_->pinned_freed(range->begin, range->bytes);
  wait_for_device();
  return pinned_.unregister(address) ? GpuStatus::kOk : GpuStatus::kHostRangeNotPinned;
}

}  // namespace offprof
