#pragma once

#include <string>
#include <vector>

#include "engine/cuda/cuda_device.h"
#include "engine/cuda/op_observer.h"
#include "simulator/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// The CUDA device over the virtual GPU: the same code, the same allocator, memory that can be larger than
/// any GPU's, and times on the virtual clocks. It tells the virtual GPU what CUDA calls do not: operators,
/// for its cost model, and blocks, for its check of stream order.
class VirtualDevice final : public CudaDevice, private AllocationBooks::BlockWatcher {
 public:
  /// `gpu` must outlive it.
  explicit VirtualDevice(VirtualGpu& gpu);
  ~VirtualDevice() override;

  bool is_virtual() const override { return true; }
  std::string description() const override { return "virtual " + CudaDevice::description(); }
  /// nullopt: without end, whatever the profile says.
  void set_capacity(std::optional<Bytes> bytes) override;

  std::byte* allocate_host(Bytes bytes) override;
  void free_host(std::byte* buffer, Bytes bytes) override;
  /// The profile's.
  std::optional<Link> known_link() const override { return gpu_.link(); }
  Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to, std::int64_t tag) override;
  /// A modelled one; where the GPU carries copies out, a real one too.
  void open_disk(const DiskRequest& request) override;
  std::optional<Work> take_work() override { return gpu_.take_work(); }
  /// Says which operators read values back, of which there are none, and which sizes are not known. Throws
  /// Error (input) where values decide the shape of an operator's result: no figure is what a GPU would come
  /// to.
  std::vector<std::string> take_notes() override;

 private:
  Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) const override;
  void on_block_allocated(const void* block, Bytes bytes, void* stream) override;
  void on_block_freed(const void* block) override;

  VirtualGpu& gpu_;
  OpObserver ops_;
};

}  // namespace offprof
