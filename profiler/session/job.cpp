#include "profiler/session/job.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "engine/scheduler/placement_rules.h"
#include "engine/transforms/transform_table.h"
#include "profiler/calibration/transform_profiles.h"
#include "profiler/recording/tracing_cost.h"
#include "profiler/session/calibrate_times.h"

namespace offprof {
namespace {

constexpr std::string_view kAllTransforms = "all";
constexpr std::string_view kRecompute = "recompute";

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

/// Returns the transforms that the request names, in its rules and beside them, each once.
std::vector<std::shared_ptr<const Transform>> transforms_of(const RunRequest& request) {
  std::vector<std::string> names = transforms_in(request.policy.rules);
  for (const std::string& asked : request.transforms)
    std::ranges::copy(asked == kAllTransforms ? transform_names() : std::vector{asked},
                      std::back_inserter(names));
  std::erase(names, kRecompute);
  std::vector<std::shared_ptr<const Transform>> transforms;
  for (const std::string& name : names)
    if (std::ranges::find(transforms, name, &Transform::name) == transforms.end())
      transforms.push_back(make_transform(name));
  return transforms;
}

void take_times(CalibratedTimes times, const RunRequest& request, Trace& trace) {
  std::ranges::move(times.notes, std::back_inserter(trace.notes));
  trace.environment.link = times.link;
  if (!times.calibration) trace.environment.link.disk = request.disk ? request.disk->speed : DiskLink{};
  DiskLink& disk = trace.environment.link.disk;
  disk.is_compressed = disk.is_known() && request.disk && request.disk->compressed;
  trace.environment.calibration = std::move(times.calibration);
}

/// Checks that the rules fit the program.
void check_rules(const Policy& policy, Trace& trace) {
  const StepPlacements placements = choose_placements(policy, trace.program, trace.transforms);
  trace.notes.insert(trace.notes.end(), placements.warnings.begin(), placements.warnings.end());
}

}  // namespace

void lift_limits(Device& device) {
  device.set_capacity(std::nullopt);
  device.set_host_capacity(std::nullopt);
}

std::unique_ptr<Job> prepare_job(const RunRequest& request, Device& device, const Progress& progress,
                                 StepTracing* tracing) {
  auto transforms = transforms_of(request);
  auto loaded = load_for(request, device, progress);
  Trace& trace = loaded->trace;
  ParameterOffloader* const offloader = loaded->offloader ? &*loaded->offloader : nullptr;
  auto trainer = std::make_unique<Trainer>(loaded->model, device, trace.settings, tracing, offloader);
  const IdleAtEnd idle_at_end(device);
  warm_up(*loaded, *trainer, device, progress);

  const auto run_step = [&](const StepOrder& order) { return trainer->run(order); };
  const StepSource source{device, progress, [&] { return trainer->residents(); }};
  RecordedProgram recorded = carry_out(record_program(source, asks_for_recomputations(request)), run_step);
  take_times(carry_out(calibrate_times(source, recorded, offloader != nullptr), run_step), request, trace);
  if (!transforms.empty()) {
    progress("measuring the costs of encoding");
    trace.transforms = profile_transforms(device, transforms, recorded.program);
  }
  note_allocator_state(device, recorded);
  trace.program = std::move(recorded.program);
  trace.dense_program = std::move(recorded.dense_program);
  check_rules(request.policy, trace);
  return std::make_unique<Job>(device, progress, std::move(loaded), std::move(trainer),
                               std::move(recorded.guide), std::move(transforms));
}

Job::Job(Device& device, const Progress& progress, std::unique_ptr<LoadedModel> loaded,
         std::unique_ptr<Trainer> trainer, StepGuide recorded,
         std::vector<std::shared_ptr<const Transform>> transforms)
    : device_(device),
      progress_(progress),
      loaded_(std::move(loaded)),
      trainer_(std::move(trainer)),
      recorded_(std::move(recorded)),
      transforms_(std::move(transforms)),
      reference_(loaded_->model.parameter_names, [this] { return trainer_->gradients(std::nullopt, {}); }),
      idle_at_end_(device) {}

GradientCheck Job::check_gradients(const Policy& policy) {
  if (device_.is_virtual()) return {"not applicable"};
  const StepGuide guide = guide_for(policy);
  return reference_.check(trainer_->gradients(policy, guide), loses_something(guide));
}

StepGuide Job::guide_for(const Policy& policy) const {
  StepGuide guide = recorded_;
  if (policy.rules.empty()) return guide;
  StepPlacements placements = choose_placements(policy, loaded_->trace.program, loaded_->trace.transforms);
  guide.placements = std::move(placements.by_tensor);
  for (const std::string& name : placements.transforms) {
    const auto found = std::ranges::find(transforms_, name, &Transform::name);
    guide.transforms.push_back(found != transforms_.end() ? *found : make_transform(name));
  }
  return guide;
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
  const Bytes parameters = loaded_->offloader ? loaded_->offloader->host_bytes() : 0;
  if (!uses_disk(policy)) return *policy.host_memory_bytes + parameters;
  Bytes largest = 0;
  for (const ProgramStorage& storage : loaded_->trace.program.storages)
    largest = std::max(largest, storage.bytes);
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
       [&] {
         return trainer_->run({.policy = policy, .guide = guide, .traced = TraceDetail::kStreams})
             .step_time_ns;
       },
       [&] {
         return trainer_->run({.policy = policy, .guide = guide, .traced = TraceDetail::kAll}).step_time_ns;
       },
       [&] {
         return trainer_->run({.policy = policy, .guide = guide, .recording = Recording::kTimeline})
             .step_time_ns;
       },
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

std::optional<Bytes> Job::capacity() const {
  return loaded_->trace.settings.device_memory_bytes ? loaded_->trace.settings.device_memory_bytes
                                                     : device_.memory_bytes();
}

}  // namespace offprof
