#include "profiler/stages/calibrate_times.h"

#include <fmt/format.h>

#include <utility>

#include "profiler/calibration/brief_calibration.h"
#include "profiler/calibration/cost_calibration.h"
#include "profiler/calibration/disk_calibration.h"
#include "profiler/recording/program_builder.h"
#include "profiler/recording/program_times.h"
#include "simulator/steps/dense_reloads.h"

namespace offprof {
namespace {

/// Number of attempts to measure the costs of offloading in rounds, since the cores may move meanwhile.
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

/// Costs of the device, and marked steps of the program.
struct MeasuredCosts {
  StepCalibration step;
  std::vector<StepMarks> marks;  ///< empty: not measured
};

/// Measures the costs in rounds of steps, again if the cores move meanwhile.
StepScript<StepCalibration> measure_in_rounds(const StepSource& source, const RecordedProgram& recorded) {
  StepCalibration measured;
  for (int i = 0; i < kCalibrations && (i == 0 || measured.cores_moved); ++i) {
    source.progress("measuring the costs of copies");
    const CopyCalibration copies = calibrate_copies(source.device);
    source.progress("measuring the costs of offloading");
    measured = co_await calibrate(source.device, copies, 2 * recorded.program.saved.size(),
                                  recorded.guide.backward_order);
    calibrate_disk(source.device, measured.costs);
  }
  co_return measured;
}

/// Measures the costs in as few steps as the budget allows.
StepScript<MeasuredCosts> measure_briefly(const StepSource& source, const RecordedProgram& recorded) {
  source.progress("measuring the costs of copies");
  const CopyCalibration copies = calibrate_copies(source.device);
  source.progress("measuring the costs of offloading");
  BriefCalibration brief = co_await calibrate_briefly(source.device, copies, source.budget.calibration,
                                                      recorded.guide.backward_order);
  calibrate_disk(source.device, brief.step.costs);
  co_return MeasuredCosts{std::move(brief.step), std::move(brief.marks)};
}

bool computes_beside_host(const StepSource& source) {
  return !source.device.torch_device().is_cpu();
}

/// Runs steps with nothing offloaded that are marked at each pack and unpack.
StepScript<std::vector<StepMarks>> mark_steps(const StepSource& source) {
  const StepOrder order{.policy = preset_policy("keep"), .recording = Recording::kMarks};
  std::vector<StepMarks> passes;
  co_await order;  // warms up
  for (int i = 0; i < source.budget.keep; ++i) {
    StepResult step = co_await order;
    passes.push_back(std::move(step.marks));
  }
  co_return passes;
}

/// Sets times from steps with few marks. Recording every operator changes a step, above all on a GPU, where
/// each mark is an event.
void set_times_by_marks(const StepSource& source, RecordedProgram& recorded,
                        const std::vector<StepMarks>& passes, Nanoseconds hook_ns,
                        std::vector<std::string>& notes) {
  const bool beside_host = computes_beside_host(source);
  const bool is_set = set_marked_times(recorded.program, passes, hook_ns,
                                       beside_host ? ComputesOn::kDevice : ComputesOn::kHost);
  if (!is_set && beside_host) assume_host_ahead(recorded.program);
  if (!is_set)
    notes.emplace_back(
        "steps with few marks differ from the recorded steps, so times come from fully recorded steps");
}

/// Keeps the recorded times of steps with parameter offload, since their stalls for parameters cannot be
/// separated.
void keep_recorded_times(const StepSource& source, RecordedProgram& recorded) {
  if (computes_beside_host(source)) assume_host_ahead(recorded.program);
}

/// Returns the compute time of a step in which every tensor comes back dense: the median, without stalls.
StepScript<Nanoseconds> dense_compute_ns(const StepSource& source, const RecordedProgram& recorded) {
  const StepOrder order{dense_offload_all(), recorded.guide.backward_order};
  std::vector<Nanoseconds> times;
  for (int i = 0; i <= source.budget.keep; ++i) {
    const StepResult step = co_await order;
    if (i > 0) times.push_back(step.step_time_ns - step.exposed_ns);  // the first only warms up
  }
  co_return median_of(std::move(times));
}

bool is_brief(const StepSource& source) {
  return source.budget.calibration.sum() > 0;
}

Nanoseconds compute_ns_of(const StepProgram& program) {
  Nanoseconds sum = 0;
  for (const Event& event : program.events) sum += event.compute_ns;
  return sum;
}

/// Measures the costs, and sets the program's own times.
StepScript<StepCalibration> measure_costs(const StepSource& source, RecordedProgram& recorded,
                                          bool offloads_parameters, std::vector<std::string>& notes) {
  MeasuredCosts measured;
  if (is_brief(source))
    measured = co_await measure_briefly(source, recorded);
  else
    measured.step = co_await measure_in_rounds(source, recorded);
  if (offloads_parameters) {
    keep_recorded_times(source, recorded);
    co_return std::move(measured.step);
  }
  if (measured.marks.empty()) measured.marks = co_await mark_steps(source);
  set_times_by_marks(source, recorded, measured.marks, measured.step.costs.hook.median_ns, notes);
  co_return std::move(measured.step);
}

}  // namespace

StepScript<CalibratedTimes> calibrate_times(const StepSource& source, RecordedProgram& recorded,
                                            bool offloads_parameters) {
  CalibratedTimes times;
  if (const auto link = source.device.known_link()) {
    times.link = *link;
    co_return times;
  }
  const Nanoseconds recorded_ns = compute_ns_of(recorded.program);
  StepCalibration measured = co_await measure_costs(source, recorded, offloads_parameters, times.notes);
  Calibration& calibration = measured.costs;
  note_cores(measured, times.notes);
  note_factor(fit_to_phases(recorded.program, calibration).value_or(1), times.notes);
  note_factor(
      fit_to_compute(recorded.program, calibration, preset_policy("keep"), calibration.step.median_ns),
      times.notes);
  calibration.reload_per_mib = reload_cost(recorded.program, calibration, measured.offloaded_extra_ns);
  if (recorded_ns > 0)
    times.recorded_scale =
        static_cast<double>(compute_ns_of(recorded.program)) / static_cast<double>(recorded_ns);
  times.link = link_of(calibration);
  times.calibration = std::move(calibration);
  co_return times;
}

StepScript<void> calibrate_dense_times(const StepSource& source, RecordedProgram& recorded,
                                       bool offloads_parameters, CalibratedTimes& times) {
  if (!recorded.dense_program || !times.calibration) co_return;
  StepProgram& program = *recorded.dense_program;
  if (computes_beside_host(source)) {
    if (offloads_parameters)
      assume_host_ahead(program);
    else
      assume_work(program, recorded.program);
  }
  if (is_brief(source)) {
    scale_compute(program, times.recorded_scale);
    co_return;
  }
  const Nanoseconds compute_ns = co_await dense_compute_ns(source, recorded);
  note_factor(fit_to_compute(program, *times.calibration, dense_offload_all(), compute_ns), times.notes);
}

}  // namespace offprof
