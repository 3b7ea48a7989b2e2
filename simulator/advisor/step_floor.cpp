#include "simulator/advisor/step_floor.h"

#include <algorithm>
#include <string_view>
#include <vector>

namespace offprof {
namespace {

/// Returns the bytes of the gradients: what backward allocates and the optimizer finds.
Bytes gradient_bytes(const StepProgram& program) {
  enum class Phase { kOther, kBackward };
  Phase phase = Phase::kOther;
  std::vector<char> is_live(program.storages.size(), 0);
  Bytes bytes = 0, at_optimizer = 0;
  for (const Event& event : program.events) {
    if (event.kind == EventKind::kPhase) {
      const std::string_view name = program.names[static_cast<std::size_t>(event.id)];
      if (name == "optimizer") at_optimizer = std::max(at_optimizer, bytes);
      phase = name == "backward" ? Phase::kBackward : Phase::kOther;
    } else if (event.kind == EventKind::kAlloc && phase == Phase::kBackward) {
      is_live[static_cast<std::size_t>(event.id)] = 1;
      bytes += program.storages[static_cast<std::size_t>(event.id)].bytes;
    } else if (event.kind == EventKind::kFree && is_live[static_cast<std::size_t>(event.id)] != 0) {
      is_live[static_cast<std::size_t>(event.id)] = 0;
      bytes -= program.storages[static_cast<std::size_t>(event.id)].bytes;
    }
  }
  return at_optimizer;
}

}  // namespace

StepFloor floor_of(const Trace& trace) {
  StepFloor floor;
  floor.parameters = trace.model.parameter_bytes;
  floor.gradients = gradient_bytes(trace.program);
  for (const ProgramStorage& storage : trace.program.storages)
    if (storage.role == StorageRole::kBuffer || storage.role == StorageRole::kInput)
      floor.inputs += storage.bytes;
  const Bytes rest = std::max<Bytes>(trace.program.resident_bytes - floor.parameters - floor.inputs, 0);
  if (const auto& optimizer = trace.model.optimizer) {
    floor.optimizer = std::min(optimizer->states, rest);
    floor.master_weights = std::min(optimizer->master_weights, rest - floor.optimizer);
    floor.workspaces = rest - floor.optimizer - floor.master_weights;
  } else {
    floor.optimizer = rest;
    floor.is_optimizer_mixed = true;
  }
  return floor;
}

}  // namespace offprof
