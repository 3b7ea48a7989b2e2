#include "simulator/report/report_run.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

namespace offprof {
namespace {

Bytes& owner_of(ResidentMemory& memory, StorageRole role) {
  if (role == StorageRole::kParameter) return memory.parameters;
  if (role == StorageRole::kBuffer) return memory.buffers;
  return role == StorageRole::kInput ? memory.inputs : memory.other;
}

/// Splits the bytes that exist for the whole step. The step program has only the storages that it saves or
/// frees: of the optimizer state none, and of the parameters not all. So the parameters' bytes are those of
/// the model, unless they are not all on the device.
ResidentMemory resident_memory(const Trace& trace, const StepProgram& program, const StepRecord& record) {
  ResidentMemory memory{.other = record.resident_bytes};
  const auto move = [&](const ProgramStorage& storage, Bytes bytes) {
    owner_of(memory, storage.role) += bytes;
    memory.other -= bytes;
  };
  for (const ProgramStorage& storage : program.storages)
    if (is_older_than_step(storage.role)) move(storage, storage.bytes);
  for (const std::int32_t freed : record.freed_residents)
    move(program.storages[freed], -program.storages[freed].bytes);
  const Bytes unsaved = trace.model.parameter_bytes - memory.parameters;
  if (trace.settings.parameters || unsaved < 0 || unsaved > memory.other) return memory;
  memory.parameters += unsaved;
  memory.other -= unsaved;
  return memory;
}

std::vector<ReservedMemory> reserved_memory(const TraceSteps& steps, const Policy& policy,
                                            const StepRecord& record) {
  std::vector<ReservedMemory> reserved;
  for (const auto& [event, bytes] : steps.reserved_over_step(policy))
    reserved.push_back({reserved.empty() ? 0 : record.event_ns.at(event), bytes});
  return reserved;
}

/// Returns for each storage the time for which the step holds the tensors that are saved of it.
std::vector<Nanoseconds> held_by_storage(const StepProgram& program, const StepRecord& record) {
  std::vector<Nanoseconds> held(program.storages.size(), 0);
  for (const auto& [at_ns, life, is_begin] : record.changes) {
    const SavedId tensor = record.lives[life].tensor;
    if (tensor >= 0) held.at(program.saved[tensor].storage) += is_begin ? -at_ns : at_ns;
  }
  return held;
}

std::vector<SavedUse> saved_uses(const StepProgram& program, const Step& step, const Policy& policy,
                                 const StepRecord& record) {
  const StepPlacements placements = step.place(policy);
  const std::vector<Nanoseconds> held = held_by_storage(program, record);
  std::vector<SavedUse> uses;
  for (std::size_t i = 0; i < program.saved.size(); ++i) {
    const SavedTensor& saved = program.saved[i];
    const PackDecision& decision = record.placements[i];
    const auto tensor = static_cast<SavedId>(i);
    uses.push_back(
        {.layout = fmt::format("{}[{}]", saved.layout->dtype, fmt::join(saved.layout->sizes, ",")),
         .placement = to_string(Placement{transform_of(placements, tensor, decision), decision.place}),
         .on_device_ns = saved.storage < 0 ? 0 : held[saved.storage]});
  }
  for (const Stall& stall : record.stalls)
    if (stall.tensor >= 0) uses[stall.tensor].stall_ns += stall.duration_ns;
  return uses;
}

}  // namespace

ReportRun reduce_trace(const Trace& trace, const TraceSteps& steps, const Link& link) {
  const Policy& policy = trace.policy;
  const StepProgram& program = steps.program(policy);
  const Step& step = steps.step(policy);
  const Policy keep = preset_policy("keep");
  ReportRun run{.recorded = trace.metrics, .trace = &trace, .program = &program};
  run.record = record_step(program, step, policy, link);
  run.predicted = steps.with_cache(policy, run.record.prediction.metrics);
  run.keep = steps.predict(keep, link);
  run.resident = resident_memory(trace, program, run.record);
  run.reserved = reserved_memory(steps, policy, run.record);
  run.peak_place = place_of_event(program, step, run.record.prediction.peak_event);
  run.saved = saved_uses(program, step, policy, run.record);
  run.device_memory_bytes = steps.device_memory_bytes();
  return run;
}

}  // namespace offprof
