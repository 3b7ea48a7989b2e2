#include "simulator/advisor/step_floor.h"

#include <algorithm>
#include <cstddef>
#include <optional>
#include <vector>

namespace offprof {
namespace {

/// Device memory when an optimizer begins.
struct AtOptimizer {
  Bytes gradients = 0;  ///< that backward has allocated
  Bytes freed = 0;      ///< of storages that were there when the step began
  Bytes inputs = 0;     ///< inputs and buffers that were, and still are there

  Bytes change() const { return gradients - freed; }
};

/// Returns for each storage whether the step allocates it.
std::vector<char> allocated_by(const StepProgram& program) {
  std::vector<char> allocated(program.storages.size(), 0);
  for (const Event& event : program.events)
    if (event.kind == EventKind::kAlloc) allocated[static_cast<std::size_t>(event.id)] = 1;
  return allocated;
}

bool is_input(const ProgramStorage& storage) {
  return storage.role == StorageRole::kBuffer || storage.role == StorageRole::kInput;
}

/// Returns the memory when that optimizer begins that finds the most. A program that drops gradients after
/// the optimizer's step frees them when the next step has begun.
AtOptimizer at_optimizer(const StepProgram& program) {
  const std::vector<char> is_of_step = allocated_by(program);
  std::vector<char> is_gradient(program.storages.size(), 0);
  AtOptimizer now;
  for (std::size_t i = 0; i < program.storages.size(); ++i)
    if (is_of_step[i] == 0 && is_input(program.storages[i])) now.inputs += program.storages[i].bytes;
  std::optional<AtOptimizer> most;
  bool is_backward = false;
  for (const Event& event : program.events) {
    const auto id = static_cast<std::size_t>(event.id);
    if (event.kind == EventKind::kPhase) {
      if (program.names[id] == "optimizer" && (!most || now.change() > most->change())) most = now;
      is_backward = program.names[id] == "backward";
    } else if (event.kind == EventKind::kAlloc && is_backward) {
      is_gradient[id] = 1;
      now.gradients += program.storages[id].bytes;
    } else if (event.kind == EventKind::kFree && is_gradient[id] != 0) {
      now.gradients -= program.storages[id].bytes;
    } else if (event.kind == EventKind::kFree && is_of_step[id] == 0) {
      now.freed += program.storages[id].bytes;
      if (is_input(program.storages[id])) now.inputs -= program.storages[id].bytes;
    }
  }
  return most.value_or(now);
}

}  // namespace

StepFloor floor_of(const Trace& trace) {
  StepFloor floor;
  floor.parameters = trace.model.parameter_bytes;
  const AtOptimizer at = at_optimizer(trace.program);
  // Gradients that were dropped are allocated again.
  const Bytes dropped = std::min(at.freed, at.gradients);
  const Bytes still_held = std::max<Bytes>(trace.model.held_gradient_bytes - dropped, 0);
  floor.gradients = at.gradients + still_held;
  floor.inputs = at.inputs;
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
