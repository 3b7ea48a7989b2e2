#pragma once

#include <ATen/core/ivalue.h>
#include <c10/core/Device.h>

#include <cstdint>
#include <optional>
#include <vector>

#include "engine/modules/rng_state.h"

namespace offprof {

/// The inputs of each of `count` micro-batches: tensors that are as long as the first along their first
/// dimension are cut along it into views, the others are in all of them. Throws Error (input) where `count`
/// does not divide that length.
std::vector<std::vector<c10::IValue>> cut_into_microbatches(const std::vector<c10::IValue>& inputs,
                                                            std::int64_t count);

/// The random numbers of a step's micro-batches. A single one has those that come next. Of several, each has
/// a stream of its own, whose seeds come next: so they are the same in whatever order the micro-batches run.
class MicrobatchRandom {
 public:
  /// For one step, from where the default generators stand now.
  MicrobatchRandom(std::int64_t count, c10::Device device);

  /// While it lives, a micro-batch draws from its stream.
  class Turn {
   public:
    Turn(MicrobatchRandom& random, std::size_t microbatch);
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    RngState* stream_ = nullptr;        ///< nullptr: there is one micro-batch only
    std::optional<RngState> before_{};  ///< where the default generators stood
  };

 private:
  c10::Device device_;
  std::vector<RngState> streams_;  ///< none for a single one
};

}  // namespace offprof
