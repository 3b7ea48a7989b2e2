#include "engine/devices/virtual_gpu/state/gpu_memory.h"

#include <algorithm>
#include <iterator>
#include <vector>

namespace offprof {
namespace {

GpuStatus valid_or_not(bool valid) {
  return valid ? GpuStatus::kOk : GpuStatus::kInvalidValue;
}

}  // namespace

void GpuMemory::restart() {
  const DeviceProfile& profile = state_.options.profile;
  device_.set_limit(std::max<Bytes>(profile.memory_bytes - profile.context_bytes, 0));
  device_.set_real(state_.options.functional_mode);
  blocks_.clear();
}

void GpuMemory::set_limit(Bytes bytes) {
  const GpuLock lock(state_.mutex);
  device_.set_limit(bytes);
}

Bytes GpuMemory::used_bytes() const {
  const GpuLock lock(state_.mutex);
  return device_.used_bytes();
}

Bytes GpuMemory::limit_bytes() const {
  const GpuLock lock(state_.mutex);
  return device_.limit_bytes();
}

GpuStatus GpuMemory::allocate(void** address, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  if (bytes < 0) return GpuStatus::kOutOfMemory;
  void* begin = bytes == 0 ? nullptr : device_.allocate(bytes);
  if (begin == nullptr && bytes > 0) return GpuStatus::kOutOfMemory;
  if (bytes > 0) report(MemoryPlace::kDevice, begin, device_.find(begin)->bytes);
  *address = begin;
  return GpuStatus::kOk;
}

bool GpuMemory::claim_device(int device) {
  const GpuLock lock(state_.mutex);
  if (!claimed_device_) claimed_device_ = device;
  return *claimed_device_ == device;
}

int GpuMemory::device() const {
  const GpuLock lock(state_.mutex);
  return claimed_device_.value_or(0);
}

GpuStatus GpuMemory::free(void* address) {
  if (address == nullptr) return GpuStatus::kOk;
  const GpuLock lock(state_.mutex);
  const auto around = device_.find(address);
  if (!around || around->begin != address) return GpuStatus::kInvalidValue;
  state_.wait_for_device();
  const auto freed = device_.free(address);
  if (freed) report(MemoryPlace::kDevice, freed->begin, -freed->bytes);
  if (freed && state_.races) state_.races->segment_freed(freed->begin, freed->bytes);
  return valid_or_not(freed.has_value());
}

void GpuMemory::report(MemoryPlace place, const void* address, Bytes bytes) const {
  if (GpuObserver* observer = state_.observer)
    observer->on_memory(place, address, bytes, state_.time.host_time());
}

AddressInfo GpuMemory::describe(const void* address) const {
  const GpuLock lock(state_.mutex);
  if (const auto device = device_.find(address)) return {MemoryPlace::kDevice, *device};
  if (const auto pinned = pinned_.find(address)) return {MemoryPlace::kPinned, *pinned};
  return {};
}

MemoryPlace GpuMemory::place_of(const void* address) const {
  if (device_.find(address)) return MemoryPlace::kDevice;
  return pinned_.find(address) ? MemoryPlace::kPinned : MemoryPlace::kPageable;
}

/// Returns the end of the block or allocation around the address; the address itself if there is none.
const char* GpuMemory::end_of_block(const char* address) const {
  const auto after = blocks_.upper_bound(address);
  if (after != blocks_.begin()) {
    const auto& [begin, bytes] = *std::prev(after);
    if (address < begin + bytes) return begin + bytes;
  }
  const auto allocation = device_.find(address);
  return allocation ? allocation->begin + allocation->bytes : address;
}

Bytes GpuMemory::reachable_bytes(std::span<const void* const> addresses) const {
  std::vector<const char*> begins;
  for (const void* address : addresses) begins.push_back(static_cast<const char*>(address));
  std::ranges::sort(begins);
  const GpuLock lock(state_.mutex);
  Bytes bytes = 0;
  const char* counted = nullptr;  // all before it
  for (const char* begin : begins) {
    const char* const end = end_of_block(begin);
    begin = std::max(begin, counted);
    if (end <= begin) continue;
    bytes += end - begin;
    counted = end;
  }
  return bytes;
}

GpuStatus GpuMemory::reserve_addresses(void** address, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  void* begin = device_.reserve(bytes);
  if (begin == nullptr) return GpuStatus::kInvalidValue;
  *address = begin;
  return GpuStatus::kOk;
}

GpuStatus GpuMemory::release_addresses(void* address, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  return valid_or_not(device_.release_reservation(address, bytes));
}

GpuStatus GpuMemory::create(AddressSpace::Handle* handle, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  if (bytes <= 0 || bytes % AddressSpace::kGranule != 0) return GpuStatus::kInvalidValue;
  const auto created = device_.create(bytes);
  if (!created) return GpuStatus::kOutOfMemory;
  *handle = *created;
  return GpuStatus::kOk;
}

GpuStatus GpuMemory::release(AddressSpace::Handle handle) {
  const GpuLock lock(state_.mutex);
  return valid_or_not(device_.release(handle));
}

GpuStatus GpuMemory::retain(AddressSpace::Handle* handle, const void* address) {
  const GpuLock lock(state_.mutex);
  const auto retained = device_.retain(address);
  if (retained) *handle = *retained;
  return valid_or_not(retained.has_value());
}

GpuStatus GpuMemory::map(void* address, Bytes bytes, AddressSpace::Handle handle) {
  const GpuLock lock(state_.mutex);
  return valid_or_not(device_.map(address, bytes, handle));
}

GpuStatus GpuMemory::unmap(void* address, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  if (!device_.is_mapped(address, bytes)) return GpuStatus::kInvalidValue;
  if (state_.races) state_.races->segment_unmapped(address, bytes);
  // Queued copies still need the real memory, so run them first. The checker has already reported this
  // hazard.
  if (state_.functional_mode) state_.functional_mode->synchronise_device();
  return valid_or_not(device_.unmap(address, bytes));
}

GpuStatus GpuMemory::set_access(const void* address, Bytes bytes) const {
  const GpuLock lock(state_.mutex);
  return valid_or_not(device_.is_mapped(address, bytes));
}

GpuStatus GpuMemory::allocate_pinned(void** address, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  void* begin = bytes == 0 ? nullptr : pinned_.allocate(bytes);
  if (begin == nullptr && bytes != 0) return GpuStatus::kOutOfMemory;
  if (bytes > 0) report(MemoryPlace::kPinned, begin, pinned_.find(begin)->bytes);
  *address = begin;
  return GpuStatus::kOk;
}

GpuStatus GpuMemory::free_pinned(void* address) {
  if (address == nullptr) return GpuStatus::kOk;
  const GpuLock lock(state_.mutex);
  const auto around = pinned_.find(address);
  if (!around || around->begin != address) return GpuStatus::kInvalidValue;
  if (state_.races) state_.races->pinned_freed(around->begin, around->bytes);
  state_.wait_for_device();
  report(MemoryPlace::kPinned, around->begin, -around->bytes);
  return valid_or_not(pinned_.free(address).has_value());
}

GpuStatus GpuMemory::pin(void* address, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  if (address == nullptr || bytes <= 0) return GpuStatus::kInvalidValue;
  return pinned_.register_range(address, bytes) ? GpuStatus::kOk : GpuStatus::kHostRangePinned;
}

GpuStatus GpuMemory::unpin(void* address) {
  const GpuLock lock(state_.mutex);
  const auto range = pinned_.find(address);
  if (!range || range->begin != address) return GpuStatus::kHostRangeNotPinned;
  if (state_.races) state_.races->pinned_freed(range->begin, range->bytes);
  state_.wait_for_device();
  return pinned_.unregister(address) ? GpuStatus::kOk : GpuStatus::kHostRangeNotPinned;
}

void GpuMemory::register_variable(const void* host_shadow, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  variables_[host_shadow] = {.bytes = bytes};
}

void* GpuMemory::variable_address(const void* host_shadow) {
  const GpuLock lock(state_.mutex);
  const auto found = variables_.find(host_shadow);
  if (found == variables_.end()) return nullptr;
  Variable& variable = found->second;
  if (variable.address == nullptr) variable.address = device_.place_variable(variable.bytes);
  return variable.address;
}

}  // namespace offprof
