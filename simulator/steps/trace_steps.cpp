#include "simulator/steps/trace_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "simulator/steps/dense_reloads.h"

namespace offprof {
namespace {

EngineCosts costs_in(const Trace& trace) {
  const auto& calibration = trace.environment.calibration;
  return calibration ? costs_of(*calibration) : EngineCosts{};
}

CacheSetting cache_setting_of(const Trace& trace) {
  const auto& asked = trace.settings.device_memory_bytes;
  const auto usable = usable_memory(trace.environment);
  const auto least = asked && usable ? std::min(*asked, *usable) : asked ? asked : usable;
  const Link& link = trace.environment.link;
  const bool is_known = link.d2h.bytes_per_second > 0 && link.h2d.bytes_per_second > 0;
  return {trace.settings.steps, least, trace.environment.device_memory_bytes.value_or(0),
          is_known ? link : kAnyLink};
}

/// Returns a sentence about saved tensors that the step does not release; an empty string: there are none.
/// The next step begins with them, on the device or not as the policy has it, while a replay begins with all
/// of them there.
std::string outliving_tensors(const StepProgram& program) {
  std::vector<char> is_released(program.saved.size(), 0);
  for (const Event& event : program.events)
    if (event.kind == EventKind::kRelease) is_released[event.id] = 1;
  const auto first = std::ranges::find(is_released, 0) - is_released.begin();
  if (first == std::ssize(is_released)) return {};
  Bytes bytes = 0;
  for (std::size_t i = 0; i < is_released.size(); ++i) bytes += is_released[i] ? 0 : program.saved[i].bytes;
  const SavedTensor& tensor = program.saved[first];
  return fmt::format(
      "predicted memory may be inexact: saved tensors of {} outlive the step, the first of {}{}. The program "
      "keeps a part of the graph that backward does not free: compute it under torch.no_grad(), or drop it "
      "before the step ends",
      format_bytes(bytes), program.names[tensor.op],
      tensor.line >= 0 ? " at " + program.names[tensor.line] : std::string());
}

}  // namespace

MemoryCapacity usable_of_device(const Trace& trace, Bytes usable) {
  return {usable, std::max(usable, trace.environment.device_memory_bytes.value_or(0))};
}

TraceSteps::TraceSteps(const Trace& trace, const std::optional<MemoryCapacity>& assumed)
    : transforms_(trace.transforms),
      program_(trace.program),
      step_(trace.program, costs_in(trace), trace.transforms),
      cache_setting_(cache_setting_of(trace)) {
  if (assumed) {
    cache_setting_.device_memory_bytes = assumed->usable_bytes;
    cache_setting_.device_total_bytes = assumed->total_bytes;
  }
  const bool parameters_are_on_disk = trace.settings.parameters && trace.settings.parameters->place == "disk";
  step_.set_parameters_are_on_disk(parameters_are_on_disk);
  if (!trace.dense_program) return;
  dense_program_ = &*trace.dense_program;
  dense_step_.emplace(*dense_program_, costs_in(trace), trace.transforms);
  dense_step_->set_parameters_are_on_disk(parameters_are_on_disk);
  changed_ = changed_by_dense_copies(*dense_program_, reloaded_tensors(*dense_step_, dense_offload_all()));
}

Metrics TraceSteps::predict(const Policy& policy, const Link& link) const {
  const Step& replayed = step(policy);
  return with_cache(replayed, policy, link, replay(replayed, policy, link).metrics);
}

Metrics TraceSteps::with_cache(const Policy& policy, Metrics replayed) const {
  return with_cache(step(policy), policy, cache_setting_.link, std::move(replayed));
}

Metrics TraceSteps::with_cache(const Step& step, const Policy& policy, const Link& link,
                               Metrics replayed) const {
  CacheSetting setting = cache_setting_;
  setting.link = link;
  if (const auto cache = predict_cache(step, policy, setting)) {
    replayed.device_allocated_peak_bytes = cache->use.allocated_peak_bytes;
    replayed.device_reserved_peak_bytes = cache->use.reserved_peak_bytes;
  }
  return replayed;
}

bool TraceSteps::fits(const Policy& policy, Bytes device_memory) const {
  const Step& replayed = step(policy);
  CacheSetting setting = cache_setting_;
  setting.device_memory_bytes = device_memory;
  const auto cache = predict_cache(replayed, policy, setting);
  if (cache) return cache->fits;
  return *replay(replayed, policy, kAnyLink).metrics.device_peak_bytes <= device_memory;
}

std::string TraceSteps::inexactness(const Policy& policy) const {
  if (std::string outliving = outliving_tensors(program_); !outliving.empty()) return outliving;
  if (has_program_of(policy)) return {};
  const auto changed = changed_by_dense_copies(*dense_program_, reloaded_tensors(*dense_step_, policy));
  return fmt::format(
      "predictions of this setting of TRL's rules may be inexact: a tensor that is not dense "
      "is reloaded in another layout, which changes backward; the trace has the step in which all {} "
      "such tensors are reloaded in that layout, but this setting reloads {}",
      changed_.size(), changed.empty() ? "none of them" : fmt::to_string(changed.size()));
}

/// A recorded program applies if the tensors that the setting would bring back under it have the layouts with
/// which it was recorded. A setting that brings nothing back executes the program as saved: a dense copy has
/// memory of its own, and is released at other times than a kept tensor, which may share its storage.
TraceSteps::Recorded TraceSteps::recorded_of(const Policy& policy) const {
  if (!traits_of(policy.scheduler).copies_tensors || dense_program_ == nullptr) return Recorded::kAsSaved;
  const std::vector<SavedId> reloaded = reloaded_tensors(step_, policy);
  if (reloaded.empty()) return Recorded::kAsSaved;
  if (changed_by_dense_copies(*dense_program_, reloaded_tensors(*dense_step_, policy)) == changed_)
    return Recorded::kDense;
  const bool any_escapes = std::ranges::any_of(
      reloaded, [&](SavedId tensor) { return step_.escapes(tensor) || dense_step_->escapes(tensor); });
  const bool as_saved = !any_escapes && changed_by_dense_copies(program_, reloaded).empty();
  return as_saved ? Recorded::kAsSaved : Recorded::kNeither;
}

}  // namespace offprof
