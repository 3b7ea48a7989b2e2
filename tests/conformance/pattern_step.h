#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <random>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/devices/device.h"

namespace offprof {

/// Training step as a device sees it. Forward creates tensors from patterns and passes them to the engine.
/// Backward takes them back in another order, and copies each to a place for a later check. In between,
/// temporaries are written and freed, so that memory is reused often. All of these are copies within device
/// memory on the compute stream, since a virtual GPU carries out nothing else. The host waits for nothing
/// before the end. Sizes, order and policy are drawn from a seed. If the device has a disk, the policy places
/// all tensors on it.
class PatternStep {
 public:
  PatternStep(Device& device, std::uint64_t seed);

  /// Runs the step and returns the number of tensors that came back with wrong values.
  int run();
  std::size_t tensors() const { return sources_.size(); }
  const Policy& policy() const { return policy_; }
  Bytes bytes_read_from_disk() const { return bytes_read_from_disk_; }  ///< in `run`

 private:
  std::size_t draw(std::size_t below) { return random_() % below; }
  at::Tensor empty(Bytes bytes) const;
  void scribble();
  void forward(OffloadStep& step);
  void backward(OffloadStep& step);
  int count_differences();

  Device& device_;
  std::mt19937_64 random_;
  Policy policy_;
  at::Tensor noise_;
  std::vector<std::vector<std::uint8_t>> patterns_;
  std::vector<at::Tensor> sources_;  ///< on the device since before the step, like parameters
  std::vector<at::Tensor> results_;  ///< on the device since before the step; hold the returned tensors
  std::vector<SavedId> order_;       ///< order of backward
  Bytes bytes_read_from_disk_ = 0;
};

}  // namespace offprof
