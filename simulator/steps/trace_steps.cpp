#include "simulator/steps/trace_steps.h"

#include <fmt/format.h>

#include <algorithm>
#include <unordered_set>
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

/// Returns which movable saved tensors outlive the step in a way that a replay does not follow: the step
/// neither releases them nor is known to release those of the step before (StepProgram::renewals), or the
/// program itself holds their memory as well.
std::vector<SavedId> unfollowed_tensors(const StepProgram& program) {
  std::unordered_set<std::int32_t> followed;
  for (const std::int32_t storage : carried_storages(program, /*of_program=*/false)) followed.insert(storage);
  for (const Renewal& renewal : program.renewals)
    if (renewal.let_go >= 0) followed.insert(renewal.new_storage);
  std::vector<char> is_released(program.saved.size(), 0);
  for (const Event& event : program.events)
    if (event.kind == EventKind::kRelease) is_released[event.id] = 1;
  std::vector<SavedId> tensors;
  for (std::size_t i = 0; i < program.saved.size(); ++i) {
    const SavedTensor& saved = program.saved[i];
    if (!is_released[i] && saved.movability == Movability::kMovable && !followed.contains(saved.storage))
      tensors.push_back(static_cast<SavedId>(i));
  }
  return tensors;
}

/// Returns a sentence about them; an empty string: there are none.
std::string outliving_tensors(const StepProgram& program) {
  const std::vector<SavedId> tensors = unfollowed_tensors(program);
  if (tensors.empty()) return {};
  Bytes bytes = 0;
  for (const SavedId tensor : tensors) bytes += program.saved[tensor].bytes;
  const SavedTensor& first = program.saved[tensors.front()];
  return fmt::format(
      "predicted memory may be inexact: saved tensors of {} outlive the step, the first of {}{}. The program "
      "keeps a part of the graph that backward does not free: compute it under torch.no_grad(), or drop it "
      "before the step ends",
      format_bytes(bytes), program.names[first.op],
      first.line >= 0 ? " at " + program.names[first.line] : std::string());
}

constexpr const char* kOtherShapes =
    "predicted allocated and reserved memory may be inexact: the program also makes steps of other shapes, "
    "and the blocks that PyTorch's allocator has kept from them are not known. The other figures are those "
    "of the recorded shape, where nothing of another one is left when the step begins, such as its batch";

}  // namespace

MemoryCapacity usable_of_device(const Trace& trace, Bytes usable) {
  return {usable, std::max(usable, trace.environment.device_memory_bytes.value_or(0))};
}

std::optional<MemoryCapacity> memory_of_run(const Trace& trace) {
  const auto& asked = trace.settings.device_memory_bytes;
  if (!asked || !trace.environment.times_are_modelled) return std::nullopt;
  return MemoryCapacity{*asked, trace.environment.device_memory_bytes.value_or(*asked)};
}

TraceSteps::TraceSteps(const Trace& trace, const std::optional<MemoryCapacity>& assumed)
    : transforms_(trace.transforms),
      program_(trace.program),
      step_(trace.program, costs_in(trace), trace.transforms),
      cache_setting_(cache_setting_of(trace)),
      steps_differ_(trace.steps_differ) {
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

CacheSetting TraceSteps::cache_over(const Link& link) const {
  CacheSetting setting = cache_setting_;
  setting.link = link;
  return setting;
}

Metrics TraceSteps::predict(const Policy& policy, const Link& link) const {
  return predict_step(step(policy), policy, cache_over(link));
}

std::optional<Metrics> TraceSteps::predict_within(Bytes most_taken, const Policy& policy,
                                                  const Link& link) const {
  return predict_step_within(most_taken, step(policy), policy, cache_over(link));
}

Metrics TraceSteps::with_cache(const Policy& policy, Metrics replayed) const {
  if (const auto cache = predict_cache(step(policy), policy, cache_setting_))
    add_cache_use(cache->use, replayed);
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
  if (std::string outliving = outliving_tensors(program(policy)); !outliving.empty()) return outliving;
  if (policy.host_memory_bytes && !leaves_the_same(step(policy), policy, kAnyLink))
    return "predicted memory may be inexact: saved tensors outlive the step, and the host memory that their "
           "copies "
           "leave to the next step is so little that it offloads other tensors; allow more host memory";
  if (has_program_of(policy)) return steps_differ_ && program_.allocator ? kOtherShapes : "";
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
