#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "traces/base/error.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"
#include "traces/model/transform_cost.h"

namespace offprof {

/// Error (input) of rules that need costs which the trace's run did not measure. A run under this policy
/// measures them; who knows the names of model and policy gives the command as the hint.
class NotRecorded : public Error {
 public:
  explicit NotRecorded(const std::string& message)
      : Error(ErrorKind::kInput, message, "Record a trace of a run under this policy.") {}
};

/// The properties of a saved tensor that rules look at.
struct RuleSubject {
  /// The operator that saves the tensor, and the path of the submodule that does; nullopt: not known, so that
  /// no rule that names one matches.
  std::optional<std::string_view> op{}, module{};
  std::string_view dtype;
  std::int64_t rank = 0;
  Bytes storage_bytes = 0;
  std::int32_t position = 0;  ///< among the saved tensors of the step
};

/// Returns true if all conditions of the rule hold.
bool matches(const PolicyRule& rule, const RuleSubject& subject);

/// Result of a policy's rules for the saved tensors of a step.
struct StepPlacements {
  std::vector<RuledPlacement> by_tensor;  ///< empty if the policy has no rules
  std::vector<std::string> transforms;    ///< the transforms that the rules name, each once
  std::vector<std::string> warnings;      ///< one sentence for each rule that matches nothing
};

/// Applies the rules of a policy to the saved tensors of a recorded step. A run and its simulation both use
/// the result.
///
/// A tensor is encoded only if one saved tensor fills the storage densely, and all saved tensors of the same
/// content have the same transform and one dtype, because they share the copy. Otherwise only the rule's
/// place applies (PlacementReason::kUnfitToEncode). A tensor that is to be recomputed must have recompute
/// steps: see settle_recomputations. If it has none and the policy has a plan, threshold and plan decide.
///
/// `program` and `profiles` must outlive the result. Throws NotRecorded if `profiles` lack a transform, or if
/// a rule asks for kRecompute and the trace has no record of recompute steps. Throws Error (input) if a
/// transform does not accept the dtype of a tensor that its rule matches.
StepPlacements choose_placements(const Policy& policy, const StepProgram& program,
                                 std::span<const TransformProfile> profiles);

/// Returns the name of the transform that encodes the tensor, given the scheduler's decision; empty: none.
std::string transform_of(const StepPlacements& placements, SavedId tensor, const PackDecision& decision);

/// True if a rule of the policy recomputes tensors.
bool recomputes(const Policy& policy);

/// Returns the transforms that the rules name, each once, in the order of the rules.
std::vector<std::string> transforms_in(const std::vector<PolicyRule>& rules);

}  // namespace offprof
