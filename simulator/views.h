#pragma once

#include <string>
#include <vector>

#include "engine/schedule/scheduler.h"
#include "simulator/replay.h"
#include "simulator/step.h"
#include "traces/ledger.h"
#include "traces/link.h"
#include "traces/policy.h"
#include "traces/program.h"
#include "traces/timeline.h"

namespace offprof {

/// The bytes that autograd saved, by where the policy puts them and why. `program` is the one `step` was made
/// of.
Ledger replay_ledger(const Program& program, const Step& step, const Policy& policy);

/// The scheduler's command log.
std::vector<Command> replay_commands(const Step& step, const Policy& policy);

struct MemoryPoint {
  Nanoseconds at_ns = 0;  ///< on the compute stream
  Bytes device_bytes = 0;
  Bytes host_bytes = 0;
};

/// Device and host bytes over the step, a point wherever they change.
std::vector<MemoryPoint> memory_over_step(const Step& step, const Policy& policy, const Link& link);

/// What the device holds at an instant of a replay, in bytes; the parts sum to `total`.
struct DeviceContent {
  Bytes total = 0;
  Bytes resident = 0;  ///< weights, optimiser state, inputs
  Bytes kept = 0;      ///< storages of saved tensors that stay on the device
  Bytes stashed = 0;   ///< of offloaded tensors whose device copy the engine still holds
  Bytes packed = 0;    ///< packed storages of saved tensors, that wait here, go out or have come back
  Bytes reloaded = 0;  ///< copied back in, or unpacked
  Bytes working = 0;   ///< everything else: gradients, temporaries, activations that nobody saved
};

/// The content right at the device peak.
DeviceContent content_at_peak(const Step& step, const Policy& policy);

/// The phase and the outermost operator or autograd node that run at event `index` of Step::events(); neither
/// where there is no such event.
struct ProgramPlace {
  std::string phase;
  std::string op;
};
ProgramPlace place_of_event(const Program& program, const Step& step, std::size_t index);

/// What `replay` did and when, for a trace file: operators, copies, waits with their reasons, counters,
/// arrows.
Timeline replay_timeline(const Program& program, const Step& step, const Policy& policy, const Link& link);

/// Everything that made the compute stream stand still, longest first.
std::vector<Stall> stalls(const Step& step, const Policy& policy, const Link& link);

}  // namespace offprof
