#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/schedule/scheduler.h"
#include "engine/step_guide.h"
#include "profiler/recipe_recorder.h"
#include "profiler/recorded_pass.h"
#include "tests/hazards/counting_device.h"
#include "tests/properties/instruction.h"
#include "tests/properties/pool.h"
#include "traces/policy.h"

namespace offprof {

/// What a program comes to, in memory that no device counts.
struct Outcome {
  std::vector<std::string> refusals;           ///< as `interpret` returns them
  std::vector<bool> has_gradient;              ///< by leaf
  std::vector<std::vector<double>> gradients;  ///< by leaf; empty: it has none, or no device computed it
};

/// And what a step under a policy took.
struct PolicyOutcome {
  Outcome outcome;
  Bytes device_peak = 0, host_peak = 0, d2h = 0, h2d = 0;
  Bytes disk_peak = 0, disk_written = 0, disk_read = 0;
  std::vector<Command> commands;
  /// A reloaded tensor lies otherwise than the one that was saved: kernels may take another path, and round
  /// otherwise.
  bool has_other_layouts = false;
};

/// Runs programs on a device, one after the other, each from the same numbers in the same leaves, as a
/// model's parameters are the same in every step.
class ProgramRunner {
 public:
  /// `device` must outlive it.
  explicit ProgramRunner(CountingDevice& device) : device_(device) {}

  /// The next program's leaves are others.
  void forget_leaves() { leaves_.reset(); }

  Outcome plain(const Instructions& program);
  PolicyOutcome under(const Instructions& program, const Policy& policy, const StepGuide& guide);
  /// A step as the profiler records it.
  RecordedPass recorded(const Instructions& program, const Policy& policy, const StepGuide& guide = {});
  /// What a step finds out of how `recorded` could make its tensors again; nullopt: the step saved others.
  std::optional<std::vector<FoundRecipe>> recipes(const Instructions& program, const Program& recorded);

 private:
  Leaves& leaves_as_new();
  void begin_measuring();
  Outcome outcome_of(const Leaves& leaves, std::vector<std::string> refusals) const;

  CountingDevice& device_;
  std::optional<Leaves> leaves_;
};

}  // namespace offprof
