#include "profiler/session/job.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/scheduler/placement_rules.h"
#include "engine/transforms/transform_table.h"
#include "profiler/calibration/disk_calibration.h"
#include "profiler/calibration/transform_profiles.h"
#include "profiler/recorder/recompute_recorder.h"
#include "profiler/recording/program_builder.h"
#include "profiler/recording/program_times.h"
#include "profiler/recording/tracing_cost.h"
#include "profiler/session/gradient_check.h"
#include "simulator/steps/dense_reloads.h"
#include "traces/base/error.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

constexpr std::string_view kAllTransforms = "all";
constexpr std::string_view kRecompute = "recompute";
/// Enough for a median that one disturbance does not change.
constexpr int kKeepPasses = 5;
/// The same for the separate program of dense copies.
constexpr int kDensePasses = 3;
/// Number of attempts to measure the costs of offloading, since the cores may move meanwhile.
constexpr int kCalibrations = 3;
/// Plausible factors for recorded times lie between this and its inverse: recording makes steps longer, but
/// not that much.
constexpr double kLeastFactor = 0.5;

/// Returns the entries of `gathered`, perhaps from another program, for tensors that `program` saves as that
/// pass did.
std::vector<Staging> staging_in(const StepProgram& program, const RecordedPass& pass,
                                std::vector<Staging> gathered) {
  std::erase_if(gathered, [&](const Staging& staging) {
    const auto tensor = static_cast<std::size_t>(staging.tensor);
    return tensor >= program.saved.size() || program.saved[tensor].layout != pass.saved[tensor].saved.layout;
  });
  return gathered;
}

/// Returns true if the request needs recompute steps.
bool asks_for_recomputations(const RunRequest& request) {
  return recomputes(request.policy) || std::ranges::any_of(request.transforms, [](const std::string& asked) {
           return asked == kAllTransforms || asked == kRecompute;
         });
}

bool loses_something(const StepGuide& guide) {
  return std::ranges::any_of(guide.placements, [&](const RuledPlacement& placement) {
    return placement && placement->transform >= 0 && !guide.transforms[placement->transform]->is_lossless();
  });
}

}  // namespace

void lift_limits(Device& device) {
  device.set_capacity(std::nullopt);
  device.set_host_capacity(std::nullopt);
}

Job::Job(const RunRequest& request, Device& device, const Progress& progress, StepTracing* tracing)
    : request_(request), device_(device), progress_(progress), idle_at_end_(device) {
  make_transforms();
  load();
  trainer_.emplace(model_, device_, trace_.settings, tracing, offloader_ ? &*offloader_ : nullptr);
  reference_.emplace(model_.parameter_names, [this] { return trainer_->gradients(std::nullopt, {}); });
  record();
}

GradientCheck Job::check_gradients(const Policy& policy) {
  if (device_.is_virtual()) return {"not applicable"};
  const StepGuide guide = guide_for(policy);
  return reference_->check(trainer_->gradients(policy, guide), loses_something(guide));
}

StepGuide Job::guide_for(const Policy& policy) const {
  StepGuide guide(order_);
  if (policy.rules.empty()) return guide;
  StepPlacements placements = choose_placements(policy, trace_.program, trace_.transforms);
  guide.placements = std::move(placements.by_tensor);
  guide.recomputations = recomputations_;
  for (const std::string& name : placements.transforms) {
    const auto found = std::ranges::find(transforms_, name, &Transform::name);
    guide.transforms.push_back(found != transforms_.end() ? *found : make_transform(name));
  }
  return guide;
}

void Job::make_transforms() {
  std::vector<std::string> names = transforms_in(request_.policy.rules);
  for (const std::string& asked : request_.transforms)
    std::ranges::copy(asked == kAllTransforms ? transform_names() : std::vector{asked},
                      std::back_inserter(names));
  std::erase(names, kRecompute);
  for (const std::string& name : names)
    if (std::ranges::find(transforms_, name, &Transform::name) == transforms_.end())
      transforms_.push_back(make_transform(name));
}

/// Searches in two steps, since a step need not repeat what another did.
void Job::find_recomputations() {
  if (!asks_for_recomputations(request_)) return;
  std::vector<std::vector<FoundRecomputation>> found;
  const auto residents = trainer_->residents();
  bool is_same = true;
  for (int i = 0; i < 2; ++i) {
    progress_("searching for tensors that can be recomputed");
    RecomputeRecorder recorder(device_, *residents);
    trainer_->step(preset_policy("keep"), order_, Recording::kNone, &recorder);
    is_same = is_same && recorder.saw(trace_.program);
    found.push_back(recorder.take());
  }
  trace_.program.recomputations.emplace();
  if (!is_same) return;
  for (FoundRecomputation& one : agreed(std::move(found.back()), found.front())) {
    recomputations_.emplace(one.recomputation.tensor,
                            std::make_shared<const ExecutableRecomputation>(std::move(one.executable)));
    trace_.program.recomputations->push_back(std::move(one.recomputation));
  }
}

/// Measures the costs of encoding, and checks that the rules fit the program.
void Job::profile_transforms() {
  if (!transforms_.empty()) {
    progress_("measuring the costs of encoding");
    trace_.transforms = offprof::profile_transforms(device_, transforms_, trace_.program);
  }
  const StepPlacements placements = choose_placements(request_.policy, trace_.program, trace_.transforms);
  trace_.notes.insert(trace_.notes.end(), placements.warnings.begin(), placements.warnings.end());
}

void Job::set_limits(const Policy& policy) {
  device_.release_cache();
  // Frees pinned memory of another policy. The same policy would have to pin its memory anew.
  if (last_policy_ != policy) device_.trim_host();
  last_policy_ = policy;
  device_.set_capacity(capacity());
  device_.set_host_capacity(host_capacity(policy));
}

/// Returns the host memory limit. Besides its own limit a policy may have data on the way to a disk: as much
/// as a buffer, plus one tensor. Parameters in host memory do not count for the policy.
std::optional<Bytes> Job::host_capacity(const Policy& policy) const {
  if (!policy.host_memory_bytes) return std::nullopt;
  const Bytes parameters = offloader_ ? offloader_->host_bytes() : 0;
  if (!uses_disk(policy)) return *policy.host_memory_bytes + parameters;
  Bytes largest = 0;
  for (const ProgramStorage& storage : trace_.program.storages) largest = std::max(largest, storage.bytes);
  return *policy.host_memory_bytes + parameters + policy.disk_buffer_bytes + largest;
}

std::vector<StepResult> Job::train(const Policy& policy, int steps, Recording recording) {
  set_limits(policy);
  const StepGuide guide = guide_for(policy);
  std::vector<StepResult> results;
  for (int i = 0; i < steps; ++i) {
    progress_("training step " + std::to_string(i + 1) + " of " + std::to_string(steps));
    results.push_back(trainer_->step(policy, guide, recording));
    if (i > 0 && recording == Recording::kNone) results.back().drop_lists(results.front());
  }
  lift_limits(device_);
  return results;
}

TracingCost Job::tracing_cost(const Policy& policy) {
  progress_("measuring the cost of tracing");
  set_limits(policy);
  const StepGuide guide = guide_for(policy);
  const TracingCost cost = measure_tracing_cost(
      {[&] { return trainer_->step(policy, guide, Recording::kNone).step_time_ns; },
       [&] { return trainer_->traced_step(policy, guide, TraceDetail::kStreams).step_time_ns; },
       [&] { return trainer_->traced_step(policy, guide, TraceDetail::kAll).step_time_ns; },
       [&] { return trainer_->recorded_step(policy, guide).step_time_ns; },
       [&] { return trainer_->step(policy, guide, Recording::kTimeline).step_time_ns; }});
  lift_limits(device_);
  return cost;
}

std::optional<OutOfMemory> Job::refusal_beforehand() {
  device_.release_cache();
  device_.reset_peak();
  const auto cache = device_.cache_use();
  const Bytes held = cache ? cache->reserved_peak_bytes : device_.live_bytes();
  if (held <= capacity().value_or(held)) return std::nullopt;
  return OutOfMemory{0, device_.live_bytes(), capacity()};
}

std::optional<Bytes> Job::used_beside_allocator() const {
  return device_.is_virtual() ? std::nullopt : device_.used_beside_allocator();
}

std::optional<Bytes> Job::capacity() const {
  return trace_.settings.device_memory_bytes ? trace_.settings.device_memory_bytes : device_.memory_bytes();
}

void Job::note_disk(DiskLink disk) {
  disk.is_compressed = disk.is_known() && request_.disk && request_.disk->compressed;
  trace_.environment.link.disk = disk;
}

/// Measures the costs besides the step program itself, and the program's own time without the cost of
/// recording.
void Job::calibrate_times() {
  if (device_.known_link()) {
    note_disk(request_.disk ? request_.disk->speed : DiskLink{});
    return;
  }
  StepCalibration measured = measure_costs();
  for (int i = 1; i < kCalibrations && measured.cores_moved; ++i) measured = measure_costs();
  Calibration& calibration = measured.costs;
  set_marked_times(calibration);
  if (measured.cores_moved)
    trace_.notes.emplace_back(
        "the distance between the compute core and the copy core changed during calibration: "
        "predicted times are unreliable; record again on an idle machine");
  else if (calibration.core_to_core.median_ns > kFurthestOverACache)
    trace_.notes.push_back(fmt::format(
        "the compute core and the copy core share no cache (a cache line takes {} ns for a round trip): "
        "reloaded tensors are slow to read, and predicted times are less accurate",
        calibration.core_to_core.median_ns));
  note_factor(fit_to_phases(trace_.program, calibration).value_or(1));
  fit(trace_.program, calibration, preset_policy("keep"), calibration.step.median_ns);
  calibration.reload_per_mib = reload_cost(trace_.program, calibration, measured.offloaded_extra_ns);
  if (trace_.dense_program) fit(*trace_.dense_program, calibration, dense_offload_all(), dense_compute_ns());
  trace_.environment.link = link_of(calibration);
  note_disk(trace_.environment.link.disk);
  trace_.environment.calibration = calibration;
}

/// Sets times from steps with few marks. Recording every operator changes a step, above all on a GPU, where
/// each mark is an event. With a pager the recorded times stay, since the stalls of such a step for
/// parameters cannot be separated.
void Job::set_marked_times(const Calibration& calibration) {
  const bool beside_host = !device_.torch_device().is_cpu();
  if (offloader_) {
    if (beside_host) assume_host_ahead(trace_.program);
    if (beside_host && trace_.dense_program) assume_host_ahead(*trace_.dense_program);
    return;
  }
  std::vector<StepMarks> passes;
  trainer_->marked_step();  // warms up
  for (int i = 0; i < kKeepPasses; ++i) passes.push_back(trainer_->marked_step());
  const bool is_set = offprof::set_marked_times(trace_.program, passes, calibration.hook.median_ns,
                                                beside_host ? ComputesOn::kDevice : ComputesOn::kHost);
  if (!is_set && beside_host) assume_host_ahead(trace_.program);
  if (!is_set)
    trace_.notes.emplace_back(
        "steps with few marks differ from the recorded steps, so times come from fully recorded steps");
  if (beside_host && trace_.dense_program) assume_work(*trace_.dense_program, trace_.program);
}

StepCalibration Job::measure_costs() {
  progress_("measuring the costs of copies");
  const CopyCalibration copies = calibrate_copies(device_);
  progress_("measuring the costs of offloading");
  StepCalibration measured = calibrate(device_, *trainer_, copies, 2 * trace_.program.saved.size(), order_);
  calibrate_disk(device_, measured.costs);
  return measured;
}

void Job::fit(StepProgram& program, const Calibration& calibration, const Policy& policy,
              Nanoseconds compute_ns) {
  note_factor(fit_to_compute(program, calibration, policy, compute_ns));
}

/// Warns if the factor applied to recorded times is implausible; nullopt: there were no times to scale.
void Job::note_factor(std::optional<double> factor) {
  if (factor && *factor > kLeastFactor && *factor < 1 / kLeastFactor) return;
  trace_.notes.push_back(
      "recorded steps took " +
      (factor ? fmt::format("{:.2g} times as long as other steps", 1 / *factor) : "almost no time") +
      ": predicted times are unreliable; record a larger batch, or record on an idle machine");
}

void Job::record() {
  learn_uses();
  progress_("warming up");
  for (int i = 0; i < trace_.settings.warmup; ++i) trainer_->plain_step();
  check_checkpointed();
  if (auto& memory = trace_.environment.beside_allocator) memory->warm_bytes = *used_beside_allocator();
  std::vector<RecordedPass> keep_passes;
  for (int i = 0; i < kKeepPasses; ++i) {
    progress_("recording with nothing offloaded");
    keep_passes.push_back(record_pass(preset_policy("keep")));
  }
  progress_("recording with everything offloaded");
  const RecordedPass offload_pass = record_pass(preset_policy("offload"));
  trace_.program = build_program(keep_passes, offload_pass);
  order_ = backward_order(trace_.program);
  find_recomputations();
  const RecordedPass last = record_dense(offload_pass);
  calibrate_times();
  profile_transforms();
  note_allocator_state(trace_.program, last);
  if (trace_.dense_program) note_allocator_state(*trace_.dense_program, last);
}

/// Records the dense copies, and the dense program if it differs. Returns the last pass.
RecordedPass Job::record_dense(const RecordedPass& offload_pass) {
  progress_("recording with everything offloaded as dense copies");
  StepResult step = trainer_->step(dense_offload_all(), {}, Recording::kProgram);
  const std::vector<Staging> staging = staging_of(step.recording, step.copies);
  trace_.program.staging = staging_in(trace_.program, step.recording, staging);
  if (serves_dense_steps(offload_pass, step.recording)) return std::move(step.recording);
  std::vector<RecordedPass> passes;
  passes.push_back(std::move(step.recording));
  while (passes.size() < kDensePasses) passes.push_back(record_pass(dense_offload_all()));
  trace_.dense_program = build_program(passes, passes.front());
  trace_.dense_program->staging = staging;
  // Checks that steps without dense copies are unchanged, so that the copies cause the difference.
  RecordedPass again = record_pass(preset_policy("keep"));
  build_program({&again, 1}, offload_pass);
  return again;
}

/// Returns the compute time of a step in which every tensor comes back dense: the median, without stalls.
Nanoseconds Job::dense_compute_ns() {
  std::vector<Nanoseconds> times;
  for (int i = 0; i <= kKeepPasses; ++i) {
    const StepResult step = trainer_->step(dense_offload_all(), order_, Recording::kNone);
    if (i > 0) times.push_back(step.step_time_ns - step.exposed_ns);  // the first only warms up
  }
  return median_of(std::move(times));
}

/// Stores the allocator state in which measured steps begin; `last` is the last recorded pass.
void Job::note_allocator_state(StepProgram& program, const RecordedPass& last) {
  device_.release_cache();
  const auto storage_of = storages_replaced_by(program, last);
  program.allocator = device_.allocator_state([&](AllocationId allocation) {
    const auto found = storage_of.find(allocation);
    return found == storage_of.end() ? -1 : found->second;
  });
}

RecordedPass Job::record_pass(const Policy& policy) {
  return std::move(trainer_->step(policy, {}, Recording::kProgram).recording);
}

}  // namespace offprof
