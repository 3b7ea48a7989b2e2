#pragma once

#include <string>
#include <vector>

#include "engine/devices/cuda/cuda_device.h"
#include "engine/devices/cuda/op_observer.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

/// CUDA device on the virtual GPU: the same code and the same allocator, with memory that can be larger than
/// any GPU's and times on virtual clocks. It gives the virtual GPU information that CUDA calls lack:
/// operators, for its cost model, and blocks, for its stream race checker.
class VirtualDevice final : public CudaDevice {
 public:
  /// Creates the device on the one that is current, of those that the virtual GPU shows; `gpu` must outlive
  /// it.
  explicit VirtualDevice(VirtualGpu& gpu);
  ~VirtualDevice() override;

  bool is_virtual() const override { return true; }
  std::string description() const override { return "virtual " + CudaDevice::description(); }
  /// Limits the memory; nullopt: no limit, regardless of the profile.
  std::optional<Bytes> used_beside_allocator() const override;
  void set_capacity(std::optional<Bytes> bytes) override;

  std::byte* allocate_host(Bytes bytes) override;
  void free_host(std::byte* buffer, Bytes bytes) override;
  /// Returns the link of the profile.
  std::optional<Link> known_link() const override { return gpu_.link(); }
  Event copy(CopyQueue queue, const CopyRequest& request) override;
  Event copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to, std::int64_t tag) override;
  /// Opens a modelled disk. In functional mode it opens a real one too.
  void open_disk(const DiskRequest& request) override;
  /// Reads the virtual clock. No event is recorded, since a recorded step has thousands of marks.
  TimeMark mark() noexcept override { return gpu_.stream_time(nullptr); }
  Nanoseconds time_of(TimeMark mark) const override;
  void begin_own_work() override { gpu_.begin_op(kOwnWork); }
  void end_own_work() override { gpu_.end_op(); }
  std::optional<Work> take_work() override { return gpu_.take_work(); }
  Nanoseconds take_compute_loss() override { return gpu_.take_compute_loss(); }
  void note_stream_commands(bool noted) override { gpu_.note_stream_commands(noted); }
  std::vector<StreamCommand> take_stream_commands() override { return gpu_.take_stream_commands(); }
  std::int64_t commands_given() const override { return gpu_.commands_given(); }
  std::optional<StepSize> take_step_size() override;
  /// Refuses a model if values decide the shape of an operator's result, since no figure would match a real
  /// GPU.
  std::optional<Error> take_model_refusal() override;
  /// Returns notes on operators that read back values, which a virtual GPU does not have, and on sizes that
  /// are not known.
  std::vector<std::string> take_notes() override;

 private:
  inline static const OpCall kOwnWork{.name = "offprof's own work", .is_apart = true};

  Nanoseconds on_device_clock(Nanoseconds virtual_time) const;
  Nanoseconds elapsed(cudaEvent_t from, cudaEvent_t to) const override;

  VirtualGpu& gpu_;
  OpObserver ops_;
};

}  // namespace offprof
