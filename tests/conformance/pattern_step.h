#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <random>
#include <vector>

#include "engine/device.h"
#include "engine/offload_step.h"

namespace offprof {

/// A training step as a device sees it: forward makes tensors out of patterns and hands them to the engine,
/// backward takes them back, in another order, and copies each to where it can be looked at later. Between
/// them, temporaries are written into and freed, so that memory is used again and again. All of it is copies
/// within device memory on the compute stream, since nothing else is carried out on a virtual GPU; the host
/// waits for nothing before the end. Sizes, order and policy are drawn from a seed; where the device has a
/// disk, the policy places all on it.
class PatternStep {
 public:
  PatternStep(Device& device, std::uint64_t seed);

  /// Tensors that came back as something else than what was handed over.
  int run();
  std::size_t tensors() const { return sources_.size(); }
  const Policy& policy() const { return policy_; }
  Bytes bytes_read_from_disk() const { return bytes_read_from_disk_; }  ///< by `run`

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
  std::vector<at::Tensor> sources_;  ///< on the device since before the step, as weights are
  std::vector<at::Tensor> results_;  ///< likewise; of what came back
  std::vector<SavedId> order_;       ///< of backward
  Bytes bytes_read_from_disk_ = 0;
};

}  // namespace offprof
