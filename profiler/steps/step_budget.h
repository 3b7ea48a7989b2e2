#pragma once

#include <initializer_list>

namespace offprof {

/// Numbers of steps of a brief calibration: see calibrate_briefly.
struct CalibrationSteps {
  int offloaded = 0;  ///< with everything offloaded
  /// with nothing offloaded and no marks; the first one only warms up, since the allocator has other blocks
  /// after offloading. 0: the marked steps have the times of such steps
  int plain = 0;
  int marked = 0;     ///< with nothing offloaded, marked at each pack and unpack
  int disturbed = 0;  ///< the same, with standstills and concurrent copies

  constexpr int sum() const { return offloaded + plain + marked + disturbed; }
};

/// Returns the steps of a brief calibration. A mark of the host is one read of its clock. A mark of a GPU is
/// an event, which costs the host more than many kernels take.
constexpr CalibrationSteps brief_calibration(bool computes_beside_host) {
  return computes_beside_host ? CalibrationSteps{.offloaded = 1, .plain = 3, .marked = 1, .disturbed = 1}
                              : CalibrationSteps{.offloaded = 3, .marked = 3, .disturbed = 1};
}

/// Numbers of steps that the stages of a run take, by kind and in their order. The defaults are those of a
/// TorchScript module, whose steps cost nothing but time, on a device whose times vary.
struct StepBudget {
  int warmup = 1;  ///< neither recorded nor measured: the first creates the optimizer's state
  /// Recorded with nothing offloaded. Five are enough for a median that one disturbance does not change.
  int keep = 5;
  int offload = 1;  ///< recorded with everything offloaded
  int search = 2;   ///< searched for recompute steps, if the request asks for them
  int dense = 3;  ///< recorded with dense copies: one, or all of them if dense copies need their own program
  int keep_after_dense = 1;  ///< recorded after those, to see that steps without dense copies are unchanged
  /// For a device whose costs are not known. All 0: it is calibrated in rounds (see calibrate) instead, which
  /// take as many steps as they need.
  CalibrationSteps calibration{};
  int measured = 5;  ///< measured under the policy
  int timeline_warmup =
      1;             ///< before those of the timeline, since a GPU's kernels are slow when first traced
  int timeline = 2;  ///< recorded under the policy for the timeline

  /// Returns the number of steps at most, unless the calibration takes rounds.
  constexpr int sum() const {
    return warmup + keep + offload + search + dense + keep_after_dense + calibration.sum() + measured +
           timeline_warmup + timeline;
  }
};

/// Returns the budget of a TorchScript module. A virtual GPU takes the same time for each step and has no
/// first kernels, so steps only have to show what is repeated.
constexpr StepBudget budget_of_model(bool is_virtual) {
  StepBudget budget;
  if (is_virtual) {
    budget.keep = 2;
    budget.timeline_warmup = 0;
  }
  return budget;
}

/// Properties of a recording on which the number of its steps depends.
struct StepNeeds {
  bool calibrates = false;            ///< the costs of the device are not known
  bool computes_beside_host = false;  ///< a GPU
  bool traces = false;    ///< a GPU is traced: the kernels of a step are slow when they are traced first
  bool searches = false;  ///< recompute steps are searched for
};

/// Most steps of a training script that a recording takes, unless the user asks for more.
inline constexpr int kMostScriptSteps = 15;

/// Returns the budget of a training script, whose steps may each take long: at most kMostScriptSteps. If they
/// do not suffice for everything, the times are measured less often. A GPU keeps its second measured step:
/// the first allocates and pins memory, so its time does not count.
constexpr StepBudget budget_of_script(const StepNeeds& needs) {
  StepBudget budget;
  // Steps of the calibration give the times of a calibrated program, so recorded ones only have to show what
  // is repeated.
  budget.keep = needs.calibrates ? 2 : 3;
  budget.search = needs.searches ? 2 : 0;
  budget.dense = 1;
  budget.measured = needs.calibrates ? 2 : 3;
  if (needs.calibrates) {
    budget.keep_after_dense = 0;  // the marked steps have to be like the recorded ones
    budget.calibration = brief_calibration(needs.computes_beside_host);
    budget.timeline_warmup = needs.traces ? 1 : 0;
    budget.timeline = 1;
  }
  if (needs.computes_beside_host && budget.sum() > kMostScriptSteps) budget.timeline_warmup = 0;
  for (int* const less :
       {&budget.calibration.marked, needs.computes_beside_host ? &budget.calibration.plain : &budget.measured,
        &budget.calibration.offloaded})
    if (budget.sum() > kMostScriptSteps && *less > 1) --*less;
  return budget;
}

static_assert([] {
  for (const bool calibrates : {false, true})
    for (const bool traces : {false, true})
      for (const bool searches : {false, true})
        for (const bool computes_beside_host : {false, true})
          if (budget_of_script({calibrates, computes_beside_host, traces, searches}).sum() > kMostScriptSteps)
            return false;
  return true;
}());

}  // namespace offprof
