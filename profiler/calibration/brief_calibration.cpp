#include "profiler/calibration/brief_calibration.h"

#include <string>
#include <utility>

#include "profiler/calibration/call_costs.h"
#include "profiler/calibration/disturbances.h"
#include "profiler/calibration/disturbed_step.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Sums up the phases of steps with nothing offloaded.
std::vector<PhaseTiming> summarize_phases(const std::vector<StepResult>& steps) {
  std::vector<PhaseTiming> phases;
  const auto& first = steps.front().phases;
  for (std::size_t p = 0; p < first.size(); ++p) {
    std::vector<Nanoseconds> times;
    for (const StepResult& step : steps)
      if (p < step.phases.size()) times.push_back(step.phases[p].second);
    phases.push_back({std::string(first[p].first), summarize_measured(std::move(times))});
  }
  return phases;
}

/// The steps of a brief calibration, in their order.
class BriefSteps {
 public:
  BriefSteps(Device& device, CalibrationSteps counts, std::vector<SavedId> backward_order)
      : device_(device), counts_(counts), offload_{preset_policy("offload"), std::move(backward_order)} {}

  /// Sets the costs in `result`, whose costs of copies are known.
  StepScript<void> run(BriefCalibration& result) {
    OFFPROF_CHECK(counts_.plain != 1 && counts_.marked > 0);
    Calibration& costs = result.step.costs;
    std::vector<StepResult> offloaded, plain, marked;
    for (int i = 0; i < counts_.offloaded; ++i) offloaded.push_back(co_await measured(offload_));
    for (int i = 0; i < counts_.plain; ++i) plain.push_back(co_await measured(plain_));
    for (int i = 0; i < counts_.marked; ++i) marked.push_back(co_await measured(marked_));
    for (StepResult& step : marked) result.marks.push_back(std::move(step.marks));
    if (!plain.empty()) plain.erase(plain.begin());
    take_times(plain.empty() ? marked : plain, costs);
    take_copies(offloaded, result.step);
    const std::vector<Nanoseconds> usual = usual_stretches(result.marks);
    for (int i = 0; i < counts_.disturbed && !usual.empty(); ++i) {
      DisturbedStep disturbed(device_, link_of(costs), usual, costs.step.median_ns);
      const StepOrder order{.policy = preset_policy("keep"), .listener = &disturbed};
      co_await measured(order);
      disturbed.add_losses(costs);
    }
    device_.take_copy_records();
    if (!core_to_core_.empty()) costs.core_to_core = summarize_measured(core_to_core_);
  }

 private:
  StepScript<StepResult> measured(const StepOrder& order) {
    StepResult step = co_await order;
    if (const auto apart = device_.core_to_core_ns()) core_to_core_.push_back(*apart);
    co_return step;
  }

  /// Takes the times of the step and of its phases from steps with nothing offloaded.
  static void take_times(const std::vector<StepResult>& steps, Calibration& costs) {
    std::vector<Nanoseconds> times;
    for (const StepResult& step : steps) times.push_back(step.step_time_ns - step.exposed_ns);
    costs.step = summarize_measured(std::move(times));
    costs.phases = summarize_phases(steps);
  }

  /// Takes the times of copies, and of compute beside them, from steps with everything offloaded.
  static void take_copies(const std::vector<StepResult>& offloaded, StepCalibration& measured) {
    std::vector<Nanoseconds> out, in;
    const auto add = [](std::vector<Nanoseconds>& times, const StepResult& step, CopyDirection direction,
                        const std::vector<CopyTiming>& alone) {
      if (const auto time = time_per_mib(step.copies, direction, alone.front().duration.median_ns))
        times.push_back(*time);
    };
    Calibration& costs = measured.costs;
    for (const StepResult& step : offloaded) {
      measured.offloaded_extra_ns.push_back(step.step_time_ns - step.exposed_ns - costs.step.median_ns);
      add(out, step, CopyDirection::kD2h, costs.d2h);
      add(in, step, CopyDirection::kH2d, costs.h2d);
    }
    if (!out.empty()) costs.copy_out_per_mib = summarize_measured(std::move(out));
    if (!in.empty()) costs.copy_in_per_mib = summarize_measured(std::move(in));
  }

  Device& device_;
  CalibrationSteps counts_;
  StepOrder offload_;
  StepOrder plain_{.policy = preset_policy("keep")};
  StepOrder marked_{.policy = preset_policy("keep"), .recording = Recording::kMarks};
  std::vector<Nanoseconds> core_to_core_;
};

}  // namespace

StepScript<BriefCalibration> calibrate_briefly(Device& device, CopyCalibration copies, CalibrationSteps steps,
                                               std::vector<SavedId> backward_order) {
  BriefCalibration result;
  Calibration& costs = result.step.costs;
  costs = calibrate_calls(device, copies);
  BriefSteps brief(device, steps, std::move(backward_order));
  co_await brief.run(result);
  result.step.cores_moved = did_cores_move(costs.core_to_core, copies.core_to_core_ns);
  co_return result;
}

}  // namespace offprof
