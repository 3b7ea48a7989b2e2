#pragma once

#include <functional>
#include <string>
#include <utility>
#include <vector>

#include "engine/devices/disk/device_disk.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"
#include "traces/model/link.h"

namespace offprof {

/// Disk of a virtual GPU. It writes nothing. Transfers take the time that a replay predicts for them. It is
/// never full.
class ModelledDeviceDisk final : public DeviceDisk {
 public:
  /// Returns the cudaStream_t of a copy queue.
  using StreamOf = std::function<void*(CopyQueue)>;
  /// Converts a time of `gpu` to the device's clock.
  using OnDeviceClock = std::function<Nanoseconds(Nanoseconds)>;

  /// Creates the disk; `gpu` must outlive it.
  ModelledDeviceDisk(const DiskLink& speed, GpuClocks& gpu, StreamOf stream_of, OnDeviceClock on_device_clock)
      : speed_(speed),
        gpu_(gpu),
        stream_of_(std::move(stream_of)),
        on_device_clock_(std::move(on_device_clock)) {}

  std::optional<Extent> reserve(Bytes bytes, std::string*) override { return Extent{0, bytes}; }
  void release(const Extent&) override {}
  Transfer write(const Extent&, const std::byte*, Bytes bytes, CopyQueue queue, std::int64_t tag) override {
    const Nanoseconds copied_out = gpu_.stream_time(stream_of_(queue));
    return after(queue,
                 transfer({DiskDirection::kWrite, copied_out, 0, bytes, tag}, speed_.write, write_free_));
  }
  Transfer read(const Extent&, std::byte*, Bytes bytes, std::int64_t tag) override {
    const Nanoseconds now = gpu_.stream_time(nullptr);
    return transfer({DiskDirection::kRead, now, 0, bytes, tag}, speed_.read, read_free_);
  }
  void hold(CopyQueue queue, const Transfer& read) override;
  void wait(const Transfer& transfer) override;
  bool check(const Transfer&) override { return true; }
  std::vector<DiskRecord> take_records() override;
  std::string warning() const override { return {}; }
  std::string description() const override { return "modelled disk"; }

 private:
  struct ModelledTransfer final : DiskTransfer {
    bool is_write = false;
    Nanoseconds end_ns = 0;  ///< on the clock of the GPU
  };

  static const ModelledTransfer& modelled(const Transfer& transfer) {
    return static_cast<const ModelledTransfer&>(*transfer);
  }
  /// Returns a transfer whose wait includes the end of all work that the queue has so far.
  Transfer after(CopyQueue queue, const std::shared_ptr<ModelledTransfer>& write);
  /// Adds a transfer. `record` gives the earliest time at which it may begin.
  std::shared_ptr<ModelledTransfer> transfer(DiskRecord record, const LinkDirection& speed,
                                             Nanoseconds& free);

  DiskLink speed_;
  GpuClocks& gpu_;
  StreamOf stream_of_;
  OnDeviceClock on_device_clock_;
  /// End of the work that the disk has so far, in each direction.
  Nanoseconds write_free_ = 0, read_free_ = 0;
  std::vector<DiskRecord> records_;  ///< on the clock of the GPU
};

}  // namespace offprof
