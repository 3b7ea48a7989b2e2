#pragma once

#include <optional>

#include "engine/autograd/step_guide.h"
#include "engine/autograd/step_listener.h"
#include "profiler/cupti/gpu_tracer.h"
#include "traces/model/policy.h"

namespace offprof {

/// Amount of recording in a step. Recording costs time.
enum class Recording {
  kNone,      ///< nothing: for reported times
  kMarks,     ///< the phases, packs and unpacks alone
  kTimeline,  ///< operators, allocations, saved tensors, commands
  kProgram,   ///< the same, and the ends of autograd nodes
};

/// A training step to run, and how much of it to record.
struct StepOrder {
  Policy policy;
  StepGuide guide{};  ///< from a step recorded before, or empty
  Recording recording = Recording::kNone;
  /// Listens to a step with Recording::kNone; nullptr: nobody listens. It must outlive the step.
  StepListener* listener = nullptr;
  std::optional<TraceDetail> traced{};  ///< traces the step, if the GPU can be traced; nullopt: not traced
  /// Leaves the peaks of the caching allocator as they are, since the program may read them; then
  /// StepResult::cache_use is absent.
  bool leaves_cache_peaks = false;
};

}  // namespace offprof
