#include "engine/cuda/virtual_device.h"

#include <limits>

namespace offprof {

VirtualDevice::VirtualDevice(VirtualGpu& gpu) : CudaDevice(0), gpu_(gpu), ops_(gpu) {
  books().set_watcher(this);
  VirtualDevice::set_capacity(std::nullopt);
}

VirtualDevice::~VirtualDevice() {
  books().set_watcher(nullptr);
}

void VirtualDevice::set_capacity(std::optional<Bytes> bytes) {
  set_books_capacity(bytes);
  gpu_.set_memory_limit(bytes.value_or(std::numeric_limits<Bytes>::max()));
}

std::byte* VirtualDevice::allocate_host(Bytes bytes) {
  std::byte* buffer = CudaDevice::allocate_host(bytes);
  gpu_.host_block_allocated(buffer, bytes);
  return buffer;
}

void VirtualDevice::free_host(std::byte* buffer, Bytes bytes) {
  gpu_.host_block_freed(buffer);
  CudaDevice::free_host(buffer, bytes);
}

std::vector<std::string> VirtualDevice::take_notes() {
  std::vector<std::string> notes = CudaDevice::take_notes();
  for (const auto& [op, count] : ops_.take_value_reads())
    notes.push_back(
        "the model reads values back from the device (" + op + ", " + std::to_string(count) +
        " times): on a virtual GPU they are zeros, and so is what its control flow and shapes saw");
  return notes;
}

Nanoseconds VirtualDevice::elapsed(cudaEvent_t from, cudaEvent_t to) const {
  return gpu_.event_time(to) - gpu_.event_time(from);
}

void VirtualDevice::on_block_allocated(const void* block, Bytes bytes, void* stream) {
  gpu_.block_allocated(block, bytes, stream);
}

void VirtualDevice::on_block_freed(const void* block) {
  gpu_.block_freed(block);
}

}  // namespace offprof
