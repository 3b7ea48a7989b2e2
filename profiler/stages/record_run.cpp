#include "profiler/stages/record_run.h"

#include <torch/version.h>

#include <algorithm>
#include <iterator>
#include <string>
#include <string_view>
#include <utility>

#include "engine/scheduler/placement_rules.h"
#include "engine/transforms/transform_table.h"
#include "profiler/calibration/transform_profiles.h"
#include "profiler/stages/calibrate_times.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

constexpr std::string_view kAllTransforms = "all";
constexpr std::string_view kRecompute = "recompute";

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

Policy policy_for(const RunRequest& request, const PlannedStep& step, std::vector<std::string>& notes) {
  return policy_for_step(request.policy, request.fallback,
                         {request.policy_made_for, request.policy_saved_fingerprint}, step,
                         /*trace_of_run=*/"", notes);
}

}  // namespace

RunRequest with_needs_of_fallback(RunRequest request) {
  if (request.policy_saved_fingerprint.empty() || !request.fallback) return request;
  std::ranges::copy(transforms_in(request.fallback->rules), std::back_inserter(request.transforms));
  if (recomputes(*request.fallback)) request.transforms.emplace_back(kRecompute);
  return request;
}

Policy policy_beforehand(const RunRequest& request, Trace& trace) {
  if (!request.policy_saved_fingerprint.empty()) return request.policy;
  return policy_for(request, {fingerprint_of_run(trace.model, trace.settings)}, trace.notes);
}

bool asks_for_recomputations(const RunRequest& request) {
  return recomputes(request.policy) || std::ranges::any_of(request.transforms, [](const std::string& asked) {
           return asked == kAllTransforms || asked == kRecompute;
         });
}

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

Environment environment_of(const RunRequest& request, const Device& device) {
  Environment environment = {request.device,
                             device.description(),
                             TORCH_VERSION,
                             request.threads,
                             device.known_link().value_or(Link{}),
                             device.memory_bytes(),
                             device.is_virtual()};
  if (const auto used = device.used_beside_allocator())
    environment.beside_allocator = MemoryBesideAllocator{*used, *used, *used};
  return environment;
}

void require_disk(const Policy& policy, Device& device) {
  if (!uses_disk(policy) || device.disk() != nullptr) return;
  throw input_error("the policy places tensors on a disk, but no disk was given",
                    device.is_virtual()
                        ? "Give the speed of the modelled disk: --disk-bandwidth 2GB/s"
                        : "Give a folder for them: --disk DIR, or write `compress` for `disk` "
                          "in its rules to keep them compressed in host memory");
}

StepScript<StepGuide> record_run(const StepSource& source, const RunRequest& request,
                                 const std::vector<std::shared_ptr<const Transform>>& transforms,
                                 bool offloads_parameters, Trace& trace) {
  RecordedProgram recorded = co_await record_program(source, asks_for_recomputations(request));
  CalibratedTimes times = co_await calibrate_times(source, recorded, offloads_parameters);
  co_await record_dense(source, recorded);  // last: see RecordedProgram::last_pass
  co_await calibrate_dense_times(source, recorded, offloads_parameters, times);
  take_times(std::move(times), request, trace);
  if (!transforms.empty()) {
    source.progress("measuring the costs of encoding");
    trace.transforms = profile_transforms(source.device, transforms, recorded.program);
  }
  trace.notes.insert(trace.notes.end(), recorded.notes.begin(), recorded.notes.end());
  note_allocator_state(source.device, recorded);
  trace.step_size = recorded.step_size;
  trace.program = std::move(recorded.program);
  trace.dense_program = std::move(recorded.dense_program);
  trace.policy = policy_for(request, planned_step_of(trace), trace.notes);
  require_disk(trace.policy, source.device);
  check_rules(trace.policy, trace);
  co_return std::move(recorded.guide);
}

}  // namespace offprof
