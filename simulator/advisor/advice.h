#pragma once

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "simulator/advisor/configuration.h"
#include "simulator/advisor/goal.h"
#include "simulator/advisor/step_floor.h"
#include "simulator/steps/modelled_time.h"
#include "traces/model/metrics.h"
#include "traces/model/policy.h"

namespace offprof {

/// A way to run the step: a configuration of the model, and a policy.
struct Way {
  std::string name;  ///< phrase for a table: `checkpoint 20 of 32 blocks.layer*`
  Configuration configuration{};
  Policy policy = preset_policy("keep");
  Metrics predicted{};                 ///< by a replay of the configuration's trace
  bool is_within = false;              ///< within the goal's limits
  std::string run_fingerprint{};       ///< of the model and the settings of the configuration's run
  std::string saved_fingerprint{};     ///< of the saved tensors of the configuration's step
  std::optional<ModelledTime> time{};  ///< nullopt: times are not modelled
  std::optional<Metrics> measured{};   ///< by a run that confirmed the prediction; nullopt: not run

  /// Returns the measured metrics, or the predicted ones if the way was not run.
  const Metrics& metrics() const { return measured ? *measured : predicted; }
};

/// A configuration that could not be recorded, and the reason.
struct UnrecordedConfiguration {
  Configuration configuration;
  std::string reason;
};

/// Result of the search for the best way.
struct Advice {
  AdviceGoal goal;
  Way nothing;            ///< the program as it is, with nothing done
  std::vector<Way> ways;  ///< all other ways that were compared, each the best of its kind
  std::size_t best = 0;   ///< index in `ways`: the recommended one, or the nearest if none is within the goal
  bool does_nothing = false;  ///< nothing needs to be done: `nothing` is within the goal, and the best
  StepFloor floor;
  std::vector<UnrecordedConfiguration> unrecorded;
  std::size_t recordings = 0;  ///< number of recordings, without the confirming run
  std::size_t replayed = 0;    ///< number of simulated policies

  const Way& recommended() const { return does_nothing ? nothing : ways[best]; }
};

}  // namespace offprof
