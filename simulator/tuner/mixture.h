#pragma once

#include "simulator/tuner/plans/recompute_groups.h"
#include "simulator/tuner/settings/frontier.h"
#include "traces/model/policy.h"

namespace offprof {

/// Policies that recompute the same groups of tensors, move some of the others and keep the rest.
struct Mixture {
  Policy base;      ///< rules, and caps
  PlanSpace space;  ///< contents that are not recomputed
  Frontier peaks;   ///< over peak and step time
};

}  // namespace offprof
