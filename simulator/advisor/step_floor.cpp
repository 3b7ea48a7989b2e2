#include "simulator/advisor/step_floor.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace offprof {
namespace {

/// Device memory when the optimizer begins.
struct AtOptimizer {
  Bytes gradients = 0;  ///< that backward has allocated
  Bytes freed = 0;      ///< of storages that were there when the step began

  Bytes change() const { return gradients - freed; }
};

/// Returns it for the optimizer that begins with the most memory. A program that drops gradients after the
/// optimizer's step frees them when the next step has begun.
AtOptimizer at_optimizer(const StepProgram& program) {
  std::vector<char> is_gradient(program.storages.size(), 0), is_of_step(program.storages.size(), 0);
  bool is_backward = false;
  AtOptimizer now;
  std::optional<AtOptimizer> most;
  for (const Event& event : program.events) {
    const auto id = static_cast<std::size_t>(event.id);
    if (event.kind == EventKind::kPhase) {
      if (program.names[id] == "optimizer" && (!most || now.change() > most->change())) most = now;
      is_backward = program.names[id] == "backward";
    } else if (event.kind == EventKind::kAlloc) {
      is_of_step[id] = 1;
      is_gradient[id] = is_backward ? 1 : 0;
      if (is_backward) now.gradients += program.storages[id].bytes;
    } else if (event.kind == EventKind::kFree && is_gradient[id] != 0) {
      now.gradients -= program.storages[id].bytes;
    } else if (event.kind == EventKind::kFree && is_of_step[id] == 0) {
      now.freed += program.storages[id].bytes;
    }
  }
  return most.value_or(AtOptimizer{});
}

}  // namespace

StepFloor floor_of(const Trace& trace) {
  StepFloor floor;
  floor.parameters = trace.model.parameter_bytes;
  const AtOptimizer at = at_optimizer(trace.program);
  const Bytes still_held = std::max<Bytes>(trace.model.held_gradient_bytes - at.freed, 0);
  floor.gradients = at.gradients + still_held;
  for (const ProgramStorage& storage : trace.program.storages)
    if (storage.role == StorageRole::kBuffer || storage.role == StorageRole::kInput)
      floor.inputs += storage.bytes;
  const Bytes known = floor.parameters + floor.inputs + still_held;
  const Bytes rest = std::max<Bytes>(trace.program.resident_bytes - at.freed - known, 0);
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
