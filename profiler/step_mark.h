#pragma once

#include <cstdint>
#include <vector>

#include "traces/program.h"
#include "traces/units.h"

namespace offprof {

/// A point of a step with nothing offloaded: where a phase begins, a tensor is packed or asked for. When the
/// host and the compute stream came to it, each on a clock of its own.
struct StepMark {
  EventKind kind = EventKind::kPhase;  ///< kPhase, kPack or kUnpack
  std::int32_t tensor = -1;            ///< saved tensor; -1: of a phase
  Nanoseconds host_ns = 0;
  Nanoseconds stream_ns = 0;

  bool operator==(const StepMark&) const = default;
};

/// All marks of one step, in program order.
using StepMarks = std::vector<StepMark>;

}  // namespace offprof
