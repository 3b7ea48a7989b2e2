#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"
#include "traces/base/units.h"
#include "traces/model/ledger.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"
#include "traces/model/timeline.h"

namespace offprof {

/// Kind of an allocation that a step makes, or frees.
enum class MemoryKind : std::uint8_t {
  kResident,    ///< older than the step, which frees it
  kParameters,  ///< loaded in the step by parameter offload
  kGradient,    ///< made by backward and alive at its end
  kSaved,       ///< holds a saved tensor, until the tensor is dropped or released
  kRestored,    ///< holds a saved tensor that was copied back, decoded or recomputed
  kEncoded,     ///< holds an encoded saved tensor
  kTemporary,   ///< anything else that forward or backward makes
  kOptimizer,   ///< made by the optimizer
};

/// Returns the name used in reports: `gradient`, `saved`, ...
std::string_view to_string(MemoryKind kind);

/// Operator, module and source line as indices in StepProgram::names; -1: not known.
struct Origin {
  std::int32_t op = -1;
  std::int32_t module = -1;
  std::int32_t line = -1;
};

/// Device allocation during a step.
struct MemoryLife {
  Bytes bytes = 0;  ///< as requested, above 0
  MemoryKind kind = MemoryKind::kTemporary;
  SavedId tensor = -1;                   ///< the first saved tensor that it holds; -1: none
  std::int32_t stream = kComputeStream;  ///< of the caching allocator; kCopyOutStream for a dense copy
  /// The operator that made it, and the module and line of that operator, or of the saved tensor.
  Origin origin{};
};

/// Begin or end of a life.
struct MemoryChange {
  Nanoseconds at_ns = 0;  ///< on the compute stream
  std::int32_t life = 0;  ///< index in StepRecord::lives
  bool is_begin = false;
};

/// Copy or disk transfer of a step.
struct RecordedCopy {
  Track track = Track::kD2h;
  Nanoseconds begin_ns = 0, end_ns = 0;
  Bytes bytes = 0;
  SavedId tensor = -1;  ///< -1: parameters
};

/// Outermost operator or autograd node of a step.
struct RecordedOp {
  Nanoseconds begin_ns = 0, end_ns = 0;
  std::int32_t phase = -1;  ///< index in StepProgram::names; -1: before the first phase
  Origin origin{};
};

/// Phase of a step: forward, backward, optimizer.
struct RecordedPhase {
  std::string name;
  Nanoseconds begin_ns = 0, end_ns = 0;
};

/// Memory that the caching allocator holds from a point in time on.
struct ReservedMemory {
  Nanoseconds at_ns = 0;
  Bytes bytes = 0;
};

/// Everything that happens in one replayed step. Times are on the compute stream.
struct StepRecord {
  Prediction prediction;
  Bytes resident_bytes = 0;  ///< live at the start and never freed by the step; not among the lives
  std::vector<std::int32_t> freed_residents;  ///< storages that are older than the step, which frees them
  std::vector<MemoryLife> lives;              ///< in the order in which they begin
  std::vector<MemoryChange> changes;  ///< in program order; their sum follows the live device bytes exactly
  std::vector<Stall> stalls;
  std::vector<RecordedCopy> copies;
  std::vector<PackDecision> placements;  ///< by saved tensor
  std::vector<RecordedOp> ops;
  std::vector<RecordedPhase> phases;
  std::vector<Nanoseconds> event_ns;  ///< when each event of Step::events() ends
};

/// Replays a step under `policy` and records it. `step` must be made from `program`.
StepRecord record_step(const StepProgram& program, const Step& step, const Policy& policy, const Link& link);

/// Returns the highest sum of the lives and the resident bytes, which is the device peak of the replay.
Bytes peak_of(const StepRecord& record);

}  // namespace offprof
