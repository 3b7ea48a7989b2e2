#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "traces/model/metrics.h"
#include "traces/model/parameter_settings.h"
#include "traces/model/policy.h"

namespace offprof {

inline constexpr std::string_view kPolicySchema = "offprof.policy/1";

/// Policy that takes the place of a plan in other programs than the one that the plan was made for.
struct FallbackPolicy {
  Policy policy;                       ///< it has no plan
  std::optional<Metrics> predicted{};  ///< its figures in the program that the plan was made for
};

/// The step that a plan is for: it numbers the tensors that autograd saves in it.
struct PlannedStep {
  std::string run_fingerprint;      ///< fingerprint_of_run; empty: unknown
  std::string saved_fingerprint{};  ///< fingerprint_of_saved; empty: unknown
};

/// Content of a `policy.json`: a policy, and, if `tune` wrote it, the predicted figures and the trace's
/// fingerprint.
struct PolicyFile {
  Policy policy;
  std::optional<Metrics> predicted;
  std::string trace_fingerprint;  ///< fingerprint of the tuned model and inputs; empty if unknown
  std::optional<ParameterSettings> parameters{};  ///< parameter offload of the tuned step
  /// Fingerprint of the tuned step's saved tensors (fingerprint_of_saved), which a plan numbers; empty if
  /// unknown.
  std::string saved_fingerprint{};
  std::optional<FallbackPolicy> fallback{};  ///< nullopt: there is none

  PlannedStep planned_step() const { return {trace_fingerprint, saved_fingerprint}; }
};

nlohmann::ordered_json to_json(const Policy& policy);
/// Reads a policy. `where` is the place in the file that errors name. Throws Error (input) for unknown keys
/// and values out of range.
Policy policy_from_json(const nlohmann::json& json, const std::string& where);

/// Reads a policy file. Throws Error (input) if it does not exist, is damaged, is not a policy file, or has
/// unknown keys or values out of range.
PolicyFile read_policy_file(const std::string& path);
/// Reads a policy file from text; `name` is its name in errors.
PolicyFile parse_policy_file(const std::string& text, const std::string& name);
nlohmann::ordered_json to_json(const PolicyFile& file);
std::string format_policy_file(const PolicyFile& file);

/// Throws Error (input) if `policy` has a plan that was made for another step than `step`, or for an unknown
/// one. Where the saved tensors of both are known they decide, so that a plan outlives changes of the model's
/// file which leave them as they are; otherwise the runs decide. `trace_of_run` is the path of the step's
/// trace, quoted for a shell if necessary; empty: there is none yet.
void refuse_foreign_plan(const Policy& policy, const PlannedStep& made_for, const PlannedStep& step,
                         const std::string& trace_of_run);

/// Returns the policy for `step`: `policy` or, if its plan was made for another step or an unknown one,
/// `fallback`; then it adds a sentence about that to `notes`. Throws as refuse_foreign_plan does if there is
/// no fallback.
Policy policy_for_step(const Policy& policy, const std::optional<Policy>& fallback,
                       const PlannedStep& made_for, const PlannedStep& step, const std::string& trace_of_run,
                       std::vector<std::string>& notes);

/// Loads a policy by the name of a preset or else by the path of a policy file.
PolicyFile load_policy(const std::string& name_or_path);

}  // namespace offprof
