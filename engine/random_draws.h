#pragma once

#include <c10/core/Device.h>

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "engine/modules/rng_state.h"
#include "engine/schedule/scheduler.h"

namespace offprof {

/// Whether what the operator gives depends on its arguments and on where the default random number generator
/// of its device stands, and on nothing else.
bool draws_random_numbers(std::string_view op);

/// One run of such an operator in a step.
struct Draw {
  std::string op;      ///< `aten::bernoulli_`
  SavedId packed = 0;  ///< saved tensors before it

  bool operator==(const Draw&) const = default;
};

/// What a step draws until its backward begins, counted from 0, and where the generators stood before.
class RandomDraws {
 public:
  /// `kept`: the draws that are to be drawn again; nullopt: all.
  RandomDraws(c10::Device device, std::optional<std::set<std::size_t>> kept)
      : device_(device), kept_(std::move(kept)) {}

  /// The next is about to be drawn.
  void add(Draw draw);
  const std::vector<Draw>& list() const { return list_; }
  /// Of a kept one. Throws c10::Error where nothing was drawn so.
  const RngState& state_before(std::size_t draw) const;

 private:
  c10::Device device_;
  std::optional<std::set<std::size_t>> kept_;
  std::vector<Draw> list_;
  std::map<std::size_t, RngState> states_;
};

}  // namespace offprof
