#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "simulator/advisor/advice.h"
#include "simulator/advisor/configuration.h"
#include "simulator/advisor/goal.h"
#include "traces/model/trace.h"

namespace offprof {

/// A recorded configuration. `trace` is null if it could not be recorded; `failure` says why.
struct RecordedStep {
  Configuration configuration{};
  std::shared_ptr<const Trace> trace{};
  std::string failure{};
  std::string name{};  ///< of an existing recording: phrase for a table
};

/// Records steps for advise. Tests replace it.
class StepRecorder {
 public:
  virtual ~StepRecorder() = default;
  /// Returns the recordings that exist already. If there are any, no others are asked for.
  virtual std::vector<RecordedStep> existing() = 0;
  /// Returns true if layer slices and parameter offload can be recorded.
  virtual bool configures_model() const = 0;
  /// Returns true if activation checkpointing can be recorded.
  virtual bool configures_checkpointing() const { return configures_model(); }
  /// Returns true if the settings of PyTorch's allocator can be chosen.
  virtual bool configures_allocator() const = 0;
  /// Records a step that keeps everything in each configuration, and searches recompute steps. The result has
  /// the order of `configurations`. Each trace is prepared for TraceSteps: its settings give the steps and
  /// the device memory that predictions are for.
  virtual std::vector<RecordedStep> record(const std::vector<Configuration>& configurations) = 0;
  /// Runs the way, and returns its measured metrics; nullopt: it cannot be run, or it failed.
  virtual std::optional<Metrics> confirm(const Way& way) = 0;
};

struct AdviceRequest {
  std::optional<Bytes> memory_budget_bytes{};  ///< nullopt: the device's memory
  std::optional<double> max_slowdown{};        ///< relative to doing nothing; 0.1: ten percent
  Objective objective = Objective::kTime;
  unsigned threads = 0;  ///< 0: one per core; the result does not depend on it
};

/// Searches the best way to run a step within the limits of the request: activation checkpointing of k of n
/// repeated modules, parameter offload, layer slices, recomputation, offloading, the allocator's settings,
/// and mixtures of these. docs/how-to/get-one-answer.md describes the
/// method. The figures of every way come from
/// a replay of a trace of its configuration; those of the recommended one from a run, if the recorder can run
/// it. `progress` is called with a phrase for each stage. Throws Error (input) if the step itself cannot be
/// recorded.
Advice advise(StepRecorder& recorder, const AdviceRequest& request,
              const std::function<void(const std::string&)>& progress);

}  // namespace offprof
