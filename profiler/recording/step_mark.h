#pragma once

#include <cstdint>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/step_program.h"

namespace offprof {

/// A point of a step with nothing offloaded, at which a phase begins or a tensor is packed or unpacked. It
/// has the times when the host and the compute stream reached it, each on its own clock.
struct StepMark {
  EventKind kind = EventKind::kPhase;  ///< kPhase, kPack or kUnpack
  std::int32_t tensor = -1;            ///< saved tensor; -1: the mark of a phase
  Nanoseconds host_ns = 0;
  Nanoseconds stream_ns = 0;

  bool operator==(const StepMark&) const = default;
};

/// All marks of one step, in program order.
using StepMarks = std::vector<StepMark>;

}  // namespace offprof
