#include "profiler/stages/calibrate_times.h"

#include <fmt/format.h>

#include <utility>

#include "profiler/calibration/cost_calibration.h"
#include "profiler/calibration/disk_calibration.h"
#include "profiler/recording/program_builder.h"
#include "profiler/recording/program_times.h"
#include "simulator/steps/dense_reloads.h"

namespace offprof {
namespace {

/// Number of attempts to measure the costs of offloading, since the cores may move meanwhile.
constexpr int kCalibrations = 3;
/// Plausible factors for recorded times lie between this and its inverse: recording makes steps longer, but
/// not that much.
constexpr double kLeastFactor = 0.5;

/// Warns if the factor applied to recorded times is implausible; nullopt: there were no times to scale.
void note_factor(std::optional<double> factor, std::vector<std::string>& notes) {
  if (factor && *factor > kLeastFactor && *factor < 1 / kLeastFactor) return;
  notes.push_back(
      "recorded steps took " +
      (factor ? fmt::format("{:.2g} times as long as other steps", 1 / *factor) : "almost no time") +
      ": predicted times are unreliable; record a larger batch, or record on an idle machine");
}

void note_cores(const StepCalibration& measured, std::vector<std::string>& notes) {
  const Nanoseconds core_to_core = measured.costs.core_to_core.median_ns;
  if (measured.cores_moved)
    notes.emplace_back(
        "the distance between the compute core and the copy core changed during calibration: "
        "predicted times are unreliable; record again on an idle machine");
  else if (core_to_core > kFurthestOverACache)
    notes.push_back(fmt::format(
        "the compute core and the copy core share no cache (a cache line takes {} ns for a round trip): "
        "reloaded tensors are slow to read, and predicted times are less accurate",
        core_to_core));
}

bool is_brief(const StepSource& source) {
  return source.calibration == CalibrationEffort::kBrief;
}

StepScript<StepCalibration> measure_costs(const StepSource& source, const RecordedProgram& recorded) {
  source.progress("measuring the costs of copies");
  const CopyCalibration copies = calibrate_copies(source.device);
  source.progress("measuring the costs of offloading");
  const int most_rounds = is_brief(source) ? 1 : kMostCalibrationRounds;
  StepCalibration measured = co_await calibrate(source.device, copies, 2 * recorded.program.saved.size(),
                                                recorded.guide.backward_order, most_rounds);
  calibrate_disk(source.device, measured.costs);
  co_return measured;
}

/// Sets times from steps with few marks. Recording every operator changes a step, above all on a GPU, where
/// each mark is an event. With parameter offload the recorded times stay, since the stalls of such a step for
/// parameters cannot be separated.
StepScript<void> set_times_by_marks(const StepSource& source, RecordedProgram& recorded, Nanoseconds hook_ns,
                                    bool offloads_parameters, std::vector<std::string>& notes) {
  const bool beside_host = !source.device.torch_device().is_cpu();
  if (offloads_parameters) {
    if (beside_host) assume_host_ahead(recorded.program);
    if (beside_host && recorded.dense_program) assume_host_ahead(*recorded.dense_program);
    co_return;
  }
  const StepOrder order{.policy = preset_policy("keep"), .recording = Recording::kMarks};
  std::vector<StepMarks> passes;
  co_await order;  // warms up
  for (int i = 0; i < kKeepPasses; ++i) {
    StepResult step = co_await order;
    passes.push_back(std::move(step.marks));
  }
  const bool is_set = set_marked_times(recorded.program, passes, hook_ns,
                                       beside_host ? ComputesOn::kDevice : ComputesOn::kHost);
  if (!is_set && beside_host) assume_host_ahead(recorded.program);
  if (!is_set)
    notes.emplace_back(
        "steps with few marks differ from the recorded steps, so times come from fully recorded steps");
  if (beside_host && recorded.dense_program) assume_work(*recorded.dense_program, recorded.program);
}

/// Returns the compute time of a step in which every tensor comes back dense: the median, without stalls.
StepScript<Nanoseconds> dense_compute_ns(const RecordedProgram& recorded) {
  const StepOrder order{dense_offload_all(), recorded.guide.backward_order};
  std::vector<Nanoseconds> times;
  for (int i = 0; i <= kKeepPasses; ++i) {
    const StepResult step = co_await order;
    if (i > 0) times.push_back(step.step_time_ns - step.exposed_ns);  // the first only warms up
  }
  co_return median_of(std::move(times));
}

}  // namespace

StepScript<CalibratedTimes> calibrate_times(const StepSource& source, RecordedProgram& recorded,
                                            bool offloads_parameters) {
  CalibratedTimes times;
  if (const auto link = source.device.known_link()) {
    times.link = *link;
    co_return times;
  }
  StepCalibration measured = co_await measure_costs(source, recorded);
  for (int i = 1; i < kCalibrations && measured.cores_moved && !is_brief(source); ++i)
    measured = co_await measure_costs(source, recorded);
  if (is_brief(source))
    times.notes.emplace_back(
        "the costs of offloading were calibrated briefly: predicted times are unreliable");
  Calibration& calibration = measured.costs;
  co_await set_times_by_marks(source, recorded, calibration.hook.median_ns, offloads_parameters, times.notes);
  note_cores(measured, times.notes);
  note_factor(fit_to_phases(recorded.program, calibration).value_or(1), times.notes);
  note_factor(
      fit_to_compute(recorded.program, calibration, preset_policy("keep"), calibration.step.median_ns),
      times.notes);
  calibration.reload_per_mib = reload_cost(recorded.program, calibration, measured.offloaded_extra_ns);
  if (recorded.dense_program) {
    const Nanoseconds compute_ns = co_await dense_compute_ns(recorded);
    note_factor(fit_to_compute(*recorded.dense_program, calibration, dense_offload_all(), compute_ns),
                times.notes);
  }
  times.link = link_of(calibration);
  times.calibration = std::move(calibration);
  co_return times;
}

}  // namespace offprof
