#pragma once

#include <map>
#include <optional>
#include <span>
#include <unordered_map>

#include "engine/devices/virtual_gpu/state/address_space.h"
#include "engine/devices/virtual_gpu/state/execution_state.h"
#include "engine/devices/virtual_gpu/state/gpu_status.h"
#include "engine/devices/virtual_gpu/state/pinned_memory.h"
#include "traces/base/units.h"

namespace offprof {

/// CUDA's view of an address.
struct AddressInfo {
  MemoryPlace place = MemoryPlace::kPageable;
  AddressRange range;  ///< the allocation around the address; empty if it is pageable
};

/// Memory of the virtual GPU: device memory, pinned host memory, and the variables of modules. Results are
/// written only if the status is kOk.
class GpuMemory {
 public:
  /// `execution` must outlive it.
  explicit GpuMemory(ExecutionState& execution) : state_(execution) {}

  /// Sets how many bytes of device memory may be in use.
  void set_limit(Bytes bytes);
  Bytes limit_bytes() const;
  Bytes used_bytes() const;
  AddressInfo describe(const void* address) const;
  /// Returns the bytes of device memory from each of the addresses to the end of its block, each byte once.
  /// The block is that of the caching allocator, or else the allocation. Other addresses count nothing.
  Bytes reachable_bytes(std::span<const void* const> addresses) const;

  /// cudaMalloc. 0 bytes give nullptr.
  GpuStatus allocate(void** address, Bytes bytes);
  /// Returns true if the process may allocate on that device: no other one has been allocated on.
  bool claim_device(int device);
  /// See VirtualGpu::device.
  int device() const;
  /// cudaFree, which waits for the device.
  GpuStatus free(void* address);

  /// The driver's virtual memory; see AddressSpace.
  GpuStatus reserve_addresses(void** address, Bytes bytes);
  GpuStatus release_addresses(void* address, Bytes bytes);
  GpuStatus create(AddressSpace::Handle* handle, Bytes bytes);
  GpuStatus release(AddressSpace::Handle handle);
  GpuStatus retain(AddressSpace::Handle* handle, const void* address);
  GpuStatus map(void* address, Bytes bytes, AddressSpace::Handle handle);
  GpuStatus unmap(void* address, Bytes bytes);
  GpuStatus set_access(const void* address, Bytes bytes) const;

  GpuStatus allocate_pinned(void** address, Bytes bytes);
  /// cudaFreeHost, which waits for the device.
  GpuStatus free_pinned(void* address);
  /// cudaHostRegister and cudaHostUnregister of the caller's memory.
  GpuStatus pin(void* address, Bytes bytes);
  GpuStatus unpin(void* address);

  /// Registers a variable of a module by the address of its host shadow.
  void register_variable(const void* host_shadow, Bytes bytes);
  /// Returns the variable's device address; nullptr if there is no such variable.
  void* variable_address(const void* host_shadow);

  /// Adds or removes a block that a caching allocator has handed out. The caller holds the lock.
  void add_block(const void* block, Bytes bytes) { blocks_[static_cast<const char*>(block)] = bytes; }
  /// Removes the block. Returns its size; 0 if there was none.
  Bytes remove_block(const void* block) {
    const auto removed = blocks_.extract(static_cast<const char*>(block));
    return removed.empty() ? 0 : removed.mapped();
  }

  /// Takes the profile's memory without that of the context as the limit, and backs new memory as the mode
  /// requires. The caller holds the lock.
  void restart();
  /// Returns the kind of memory at the address. The caller holds the lock.
  MemoryPlace place_of(const void* address) const;

 private:
  struct Variable {
    Bytes bytes = 0;
    void* address = nullptr;
  };

  const char* end_of_block(const char* address) const;
  void report(MemoryPlace place, const void* address, Bytes bytes) const;

  ExecutionState& state_;
  std::optional<int> claimed_device_;
  AddressSpace device_;
  PinnedMemory pinned_;
  std::map<const char*, Bytes> blocks_;  ///< of caching allocators
  std::unordered_map<const void*, Variable> variables_;
};

}  // namespace offprof
