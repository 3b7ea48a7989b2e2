#pragma once

#include <string>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"
#include "traces/model/ledger.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"
#include "traces/model/timeline.h"

namespace offprof {

/// Returns the bytes that autograd saved, by place under the policy and by reason. `step` must be made from
/// `program`.
Ledger replay_ledger(const StepProgram& program, const Step& step, const Policy& policy);

/// Returns the scheduler's commands in order.
std::vector<Command> replay_commands(const Step& step, const Policy& policy);

struct MemoryPoint {
  Nanoseconds at_ns = 0;  ///< on the compute stream
  Bytes device_bytes = 0;
  Bytes host_bytes = 0;
};

/// Returns device and host bytes over the step, with one point at each change.
std::vector<MemoryPoint> memory_over_step(const Step& step, const Policy& policy, const Link& link);

/// Contents of device memory at one instant of a replay, in bytes; the parts sum to `total`.
struct DeviceContent {
  Bytes total = 0;
  Bytes resident = 0;  ///< parameters, optimizer state, inputs
  Bytes kept = 0;      ///< storages of saved tensors that stay on the device
  Bytes stashed = 0;   ///< offloaded tensors whose device copy the engine still holds
  Bytes encoded = 0;   ///< encoded storages of saved tensors: waiting here, being copied out, or back
  Bytes reloaded = 0;  ///< copied back in, decoded or recomputed
  Bytes gathered = 0;  ///< parameters that the step gathers or loads around their uses
  Bytes working = 0;   ///< everything else: gradients, temporaries, activations that nobody saved
};

/// Returns the contents at the device peak. The link matters only to a program that frees memory which other
/// streams use: see StepProgram::free_points.
DeviceContent content_at_peak(const Step& step, const Policy& policy, const Link& link);

/// The phase and the outermost operator or autograd node that run at event `index` of Step::events(); both
/// are empty if there is no such event.
struct ProgramPlace {
  std::string phase;
  std::string op;
};
ProgramPlace place_of_event(const StepProgram& program, const Step& step, std::size_t index);

/// Returns the timeline of a replay for a trace file: operators, copies, waits with their reasons, counters,
/// arrows.
Timeline replay_timeline(const StepProgram& program, const Step& step, const Policy& policy,
                         const Link& link);

/// Returns all stalls of the compute stream, longest first.
std::vector<Stall> stalls(const Step& step, const Policy& policy, const Link& link);

}  // namespace offprof
