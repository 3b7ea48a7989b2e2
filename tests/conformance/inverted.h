#pragma once

#include <ATen/ops/bitwise_not.h>
#include <ATen/ops/zeros_like.h>

#include <cstddef>
#include <memory>
#include <string>

#include "engine/autograd/step_guide.h"
#include "engine/transforms/transform.h"
#include "traces/model/policy.h"

namespace offprof {

/// Transform `inverted`: encodes every type without loss by inverting each bit, so that nothing can use the
/// encoded bytes unnoticed. For tests.
class Inverted final : public Transform {
 public:
  std::string name() const override { return "inverted"; }
  bool is_lossless() const override { return true; }
  bool takes(at::ScalarType /*type*/) const override { return true; }
  Bytes encoded_bytes(at::ScalarType type, std::int64_t elements) const override {
    return elements * static_cast<Bytes>(c10::elementSize(type));
  }
  Encoded encode(const at::Tensor& values) const override {
    return {values.view(at::kByte).bitwise_not(), c10::IValue("whatever")};
  }
  at::Tensor decode(const Encoded& encoded, at::ScalarType type, std::int64_t /*elements*/) const override {
    TORCH_CHECK(encoded.rest.toStringRef() == "whatever");
    return encoded.bytes.bitwise_not().view(type);
  }
  at::Tensor error_bound(const at::Tensor& values) const override {
    return at::zeros_like(values, values.options().dtype(at::kDouble));
  }
};

/// Returns the guide of a step without a recording. The policy's last rule applies to all tensors that may
/// move, even to views if it has no transform; without rules it is empty.
inline StepGuide unrecorded_guide(const Policy& policy) {
  StepGuide guide;
  if (policy.rules.empty()) return guide;
  const Placement placement = policy.rules.back().placement;
  if (placement.place == Place::kRecompute) return guide;  // there is no recomputation without a recording
  if (placement.transform.empty()) {
    constexpr std::size_t kMostTensors = 1 << 13;
    guide.placements.assign(kMostTensors, ResolvedPlacement{placement.place});
    return guide;
  }
  guide.transforms = {std::make_shared<const Inverted>()};
  guide.place = [placement](const at::Tensor& value) -> RuledPlacement {
    return ResolvedPlacement{placement.place, PlacementReason::kRule, 0, static_cast<Bytes>(value.nbytes())};
  };
  return guide;
}

}  // namespace offprof
