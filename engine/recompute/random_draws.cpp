#include "engine/recompute/random_draws.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <utility>

namespace offprof {
namespace {

constexpr std::array kDrawing = std::to_array<std::string_view>({
    "aten::bernoulli",
    "aten::bernoulli_",
    "aten::native_dropout",
    "aten::normal_",
    "aten::uniform_",
});

}  // namespace

bool draws_random_numbers(std::string_view op) {
  return std::ranges::find(kDrawing, op) != kDrawing.end();
}

void RandomDraws::add(Draw draw) {
  if (!kept_ || kept_->contains(list_.size())) states_.emplace(list_.size(), RngState(device_));
  list_.push_back(std::move(draw));
}

const RngState& RandomDraws::state_before(std::size_t draw) const {
  const auto found = states_.find(draw);
  TORCH_CHECK(found != states_.end(),
              "this step has not drawn the random numbers that the recorded step drew");
  return found->second;
}

}  // namespace offprof
