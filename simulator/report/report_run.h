#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "simulator/report/step_record.h"
#include "simulator/steps/trace_steps.h"
#include "simulator/steps/views.h"
#include "simulator/tuner/tune_result.h"
#include "traces/model/metrics.h"
#include "traces/model/trace.h"

namespace offprof {

/// Memory that exists for the whole step, by owner.
struct ResidentMemory {
  Bytes parameters = 0, buffers = 0, inputs = 0;
  Bytes other = 0;  ///< optimizer state, workspaces of libraries, constants
};

/// Saved tensor in a report.
struct SavedUse {
  std::string layout{};          ///< `bfloat16[4,128]`
  std::string placement{};       ///< `device`, `quantize:uint8+host`, ...
  Nanoseconds on_device_ns = 0;  ///< time for which an allocation of the step holds the tensor
  Nanoseconds stall_ns = 0;      ///< time for which the compute stream waits for its copies
};

/// One trace, replayed under its own policy, as a report shows it.
struct ReportRun {
  std::string label{};   ///< distinguishes the runs of a report
  std::string source{};  ///< path of the trace, as it was given
  Metrics recorded{};    ///< figures in the trace
  Metrics predicted{};   ///< figures of the replay, with those of the caching allocator
  Metrics keep{};        ///< figures of the replay with nothing offloaded
  StepRecord record{};
  ResidentMemory resident{};
  std::vector<ReservedMemory> reserved{};  ///< empty: the device has no caching allocator
  ProgramPlace peak_place{};
  std::vector<SavedUse> saved{};               ///< by saved tensor
  std::optional<Bytes> device_memory_bytes{};  ///< memory that steps can take; nullopt: not known
  const Trace* trace = nullptr;                ///< it must outlive the run
  const StepProgram* program = nullptr;        ///< of the trace under its policy
};

/// Replays the trace's step under its policy, over `link`. `steps` must be made from `trace`; both must
/// outlive the result.
ReportRun reduce_trace(const Trace& trace, const TraceSteps& steps, const Link& link);

/// Returns the columns of a run. Times in a column of times are differences to the one before. A change of
/// memory is -1 if the next life begins, or else the number of the life that ends. Names are numbers in
/// `names`; -1: not known.
nlohmann::ordered_json to_columns(const ReportRun& run);

/// Returns the policies of a Pareto frontier of the trace's step as policy files, with their descriptions,
/// and the baselines `keep` and `trl`.
nlohmann::ordered_json to_columns(const TuneResult& result, const Trace& trace);

}  // namespace offprof
