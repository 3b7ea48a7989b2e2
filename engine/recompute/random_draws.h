#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "engine/torch/rng_state.h"

namespace offprof {

/// Returns true if the operator's result depends only on its arguments and on the state of its device's
/// default random number generator.
bool draws_random_numbers(std::string_view op);

/// One call of such an operator in a step.
struct Draw {
  std::string op;      ///< `aten::bernoulli_`
  SavedId packed = 0;  ///< number of saved tensors before it

  bool operator==(const Draw&) const = default;
};

/// The random draws of a step before its backward starts, counted from 0, and the generator states before
/// them.
class RandomDraws {
 public:
  /// `kept`: draws whose generator state is kept, to be drawn again; nullopt: all.
  RandomDraws(c10::Device device, std::optional<std::set<std::size_t>> kept)
      : device_(device), kept_(std::move(kept)) {}

  /// Adds the next draw. Call before it is made.
  void add(Draw draw);
  const std::vector<Draw>& list() const { return list_; }
  /// Returns the generator state before a kept draw. Throws c10::Error if the step has not made that draw.
  const RngState& state_before(std::size_t draw) const;

 private:
  c10::Device device_;
  std::optional<std::set<std::size_t>> kept_;
  std::vector<Draw> list_;
  std::map<std::size_t, RngState> states_;
};

}  // namespace offprof
