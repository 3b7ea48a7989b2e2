#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/autograd/step_guide.h"
#include "engine/scheduler/scheduler.h"
#include "profiler/recorder/recompute_recorder.h"
#include "profiler/recording/recorded_pass.h"
#include "tests/hazards/counting_device.h"
#include "tests/properties/instruction.h"
#include "tests/properties/pool.h"
#include "traces/model/policy.h"

namespace offprof {

/// Result of a program, in memory that no device counts.
struct Outcome {
  std::vector<std::string> refusals;  ///< as returned by `interpret`
  std::vector<bool> has_gradient;     ///< by leaf
  /// By leaf; empty if the leaf has none or no device computed it.
  std::vector<std::vector<double>> gradients;
};

/// Result and memory use of a step under a policy.
struct PolicyOutcome {
  Outcome outcome;
  Bytes device_peak = 0, host_peak = 0, d2h = 0, h2d = 0;
  Bytes disk_peak = 0, disk_written = 0, disk_read = 0;
  std::vector<Command> commands;
  /// True if a reloaded tensor has another layout than the saved one. Then kernels may take another path and
  /// round differently.
  bool has_other_layouts = false;
};

/// Runs programs on a device, one after the other. Each starts with the same values in the same leaves, like
/// the parameters of a model in each step.
class ProgramRunner {
 public:
  /// Creates the runner; `device` must outlive it.
  explicit ProgramRunner(CountingDevice& device) : device_(device) {}

  /// Makes the next program use new leaves.
  void forget_leaves() { leaves_.reset(); }

  Outcome plain(const Instructions& program);
  PolicyOutcome under(const Instructions& program, const Policy& policy, const StepGuide& guide);
  /// Records a step as the profiler does.
  RecordedPass recorded(const Instructions& program, const Policy& policy, const StepGuide& guide = {});
  /// Returns the recomputations that a step finds for the saved tensors of `recorded`; nullopt if the step
  /// saved other tensors.
  std::optional<std::vector<FoundRecomputation>> recomputations(const Instructions& program,
                                                                const StepProgram& recorded);

 private:
  Leaves& leaves_as_new();
  void begin_measuring();
  Outcome outcome_of(const Leaves& leaves, std::vector<std::string> refusals) const;

  CountingDevice& device_;
  std::optional<Leaves> leaves_;
};

}  // namespace offprof
