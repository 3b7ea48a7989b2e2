#pragma once

#include <vector>

#include "traces/model/policy_rule.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Returns sets of rules that recompute saved tensors, from none on. Each set has the rules of the one before
/// it, and one more: that of the group of tensors (one operator, dtype, rank and storage size) whose
/// recomputation takes the least time per byte. Groups with a small share of the recomputable bytes are left
/// out. Only the empty set if the trace has no recompute steps.
std::vector<std::vector<PolicyRule>> recompute_sets(const StepProgram& program);

}  // namespace offprof
