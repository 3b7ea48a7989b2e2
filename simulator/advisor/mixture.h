#pragma once

#include <cstddef>
#include <cstdint>
#include <vector>

#include "simulator/replay/step.h"
#include "simulator/tuner/settings/movable_version.h"
#include "traces/model/policy.h"
#include "traces/model/policy_rule.h"

namespace offprof {

/// Steps of Mixture::share: a share of 1/kShareSteps of the bytes.
inline constexpr std::int64_t kShareSteps = 256;

/// A policy that recomputes some saved tensors and offloads a part of the rest.
struct Mixture {
  std::size_t rules = 0;       ///< index of a set of rules
  std::int64_t share = 0;      ///< offloaded bytes of the others, in parts of kShareSteps
  std::int64_t stash = 0;      ///< tensors (Policy::stash_count)
  std::int64_t prefetch = 0;   ///< window, in halves of the largest movable storage
  bool spares_latest = false;  ///< true: offloads the tensors that are saved first; false: evenly spread

  auto operator<=>(const Mixture&) const =
      default;  // NOLINT(modernize-use-nullptr): a literal of the compiler
};

/// Makes policies of mixtures for one step.
class MixtureMaker {
 public:
  /// `step` must be made from `program`; both must outlive the object.
  MixtureMaker(const StepProgram& program, const Step& step);

  std::size_t rule_sets() const { return rule_sets_.size(); }
  std::size_t movable() const { return versions_.size(); }

  /// Returns the policy. A mixture that offloads nothing and recomputes nothing gives the preset `keep`.
  Policy policy_of(const Mixture& mixture) const;

 private:
  std::vector<std::int32_t> offloaded(const Mixture& mixture) const;

  std::vector<std::vector<PolicyRule>> rule_sets_;
  std::vector<MovableVersion> versions_;
  /// By set of rules and version: whether a rule takes the version.
  std::vector<std::vector<char>> is_ruled_;
  Bytes largest_ = 0;  ///< size of the largest version
};

}  // namespace offprof
