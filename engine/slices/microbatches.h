#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/torch/rng_state.h"

namespace offprof {

/// Cuts the inputs into `count` micro-batches. Tensors with the same first dimension as the first one are cut
/// along it into views; the others are in every micro-batch. Throws Error (input) if `count` does not divide
/// that dimension.
std::vector<std::vector<c10::IValue>> cut_into_microbatches(const std::vector<c10::IValue>& inputs,
                                                            std::int64_t count);

/// Random numbers of a step's micro-batches. A single micro-batch draws from the default generators. Each of
/// several has a separate stream, whose seed the default generators draw; so the order in which the
/// micro-batches run does not matter.
class MicrobatchRandom {
 public:
  /// Prepares one step, starting at the current state of the default generators.
  MicrobatchRandom(std::int64_t count, c10::Device device);

  /// Makes a micro-batch draw from its stream while this object lives.
  class Turn {
   public:
    Turn(MicrobatchRandom& random, std::size_t microbatch);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    RngState* stream_ = nullptr;        ///< nullptr: there is only one micro-batch
    std::optional<RngState> before_{};  ///< state of the default generators before
  };

 private:
  c10::Device device_;
  std::vector<RngState> streams_;  ///< empty for a single micro-batch
};

}  // namespace offprof
