#include "profiler/stages/policy_steps.h"

#include <algorithm>
#include <string>

#include "engine/scheduler/placement_rules.h"
#include "engine/transforms/transform_table.h"
#include "profiler/stages/step_error.h"

namespace offprof {

StepGuide PolicySteps::guide_for(const Policy& policy) const {
  StepGuide guide = recorded_;
  if (policy.rules.empty()) return guide;
  StepPlacements placements = choose_placements(policy, trace_.program, trace_.transforms);
  guide.placements = std::move(placements.by_tensor);
  for (const std::string& name : placements.transforms) {
    const auto found = std::ranges::find(transforms_, name, &Transform::name);
    guide.transforms.push_back(found != transforms_.end() ? *found : make_transform(name));
  }
  return guide;
}

bool PolicySteps::loses_something(const StepGuide& guide) {
  return std::ranges::any_of(guide.placements, [&](const RuledPlacement& placement) {
    return placement && placement->transform >= 0 && !guide.transforms[placement->transform]->is_lossless();
  });
}

void PolicySteps::set_limits(const Policy& policy) {
  source_.device.release_cache();
  limit_memory(policy);
}

void PolicySteps::limit_memory(const Policy& policy) {
  // Frees pinned memory of another policy. The same policy would have to pin its memory anew.
  if (last_policy_ != policy) source_.device.trim_host();
  last_policy_ = policy;
  source_.device.set_capacity(capacity());
  source_.device.set_host_capacity(host_capacity(policy));
}

/// Returns the host memory limit. Besides its own limit a policy may have data on the way to a disk: as much
/// as a buffer, plus one tensor. Parameters in host memory do not count for the policy.
std::optional<Bytes> PolicySteps::host_capacity(const Policy& policy) const {
  if (!policy.host_memory_bytes) return std::nullopt;
  const Bytes parameters = source_.parameter_host_bytes ? source_.parameter_host_bytes() : 0;
  if (!uses_disk(policy)) return *policy.host_memory_bytes + parameters;
  Bytes largest = 0;
  for (const ProgramStorage& storage : trace_.program.storages) largest = std::max(largest, storage.bytes);
  return *policy.host_memory_bytes + parameters + policy.disk_buffer_bytes + largest;
}

StepScript<std::vector<StepResult>> PolicySteps::train(Policy policy, int steps, Recording recording) {
  const bool keeps_cache = recording == Recording::kTimeline && last_policy_ == policy;
  keeps_cache ? limit_memory(policy) : set_limits(policy);
  const StepOrder order{
      .policy = policy,
      .guide = guide_for(policy),
      .recording = recording,
      .traced = recording == Recording::kTimeline ? std::optional(TraceDetail::kAll) : std::nullopt};
  std::vector<StepResult> results;
  for (int i = 0; i < steps; ++i) {
    source_.progress("training step " + std::to_string(i + 1) + " of " + std::to_string(steps));
    results.push_back(co_await order);
    if (i > 0 && recording == Recording::kNone) results.back().drop_lists(results.front());
  }
  lift_limits(source_.device);
  co_return results;
}

std::optional<OutOfMemory> PolicySteps::refusal_beforehand() {
  DeviceAllocator& allocator = source_.device;
  allocator.release_cache();
  allocator.reset_peak();
  const auto cache = allocator.cache_use();
  const Bytes held = cache ? cache->reserved_peak_bytes : allocator.live_bytes();
  if (held <= capacity().value_or(held)) return std::nullopt;
  return OutOfMemory{0, allocator.live_bytes(), capacity()};
}

std::optional<Bytes> PolicySteps::capacity() const {
  if (trace_.settings.device_memory_bytes) return trace_.settings.device_memory_bytes;
  // A GPU's driver sets the limit itself; a virtual one has no context whose memory would be missing.
  return source_.device.is_virtual() ? usable_memory(trace_.environment) : source_.device.memory_bytes();
}

}  // namespace offprof
