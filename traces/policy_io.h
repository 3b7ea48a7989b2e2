#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "traces/metrics.h"
#include "traces/policy.h"
#include "traces/weight_settings.h"

namespace offprof {

inline constexpr std::string_view kPolicySchema = "offprof.policy/1";

/// What a `policy.json` holds: a policy, and where `tune` wrote it what it predicted for which trace.
struct PolicyFile {
  Policy policy;
  std::optional<Metrics> predicted;
  std::string trace_fingerprint;  ///< of the model and inputs that it was tuned for; empty if unknown
  std::optional<WeightSettings> weights{};  ///< with which the step ran that was tuned
};

nlohmann::ordered_json to_json(const Policy& policy);
/// `where` is the place in the file that errors name. Throws Error (input) for unknown keys and values out of
/// range.
Policy policy_from_json(const nlohmann::json& json, const std::string& where);

/// Throws Error (input): not there, broken, no policy file, or unknown keys and values out of range.
PolicyFile read_policy_file(const std::string& path);
/// The same from text; `name` stands for it in errors.
PolicyFile parse_policy_file(const std::string& text, const std::string& name);
std::string format_policy_file(const PolicyFile& file);

/// A plan counts tensors of one model and its inputs. Throws Error (input) where `policy` has one that was
/// made for another run than `fingerprint_of_run`, or nothing says for which.
void refuse_foreign_plan(const Policy& policy, const std::string& made_for,
                         const std::string& fingerprint_of_run);

/// A preset's name, or else a policy file's path.
PolicyFile load_policy(const std::string& name_or_path);

}  // namespace offprof
