#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/devices/disk/device_disk.h"
#include "engine/devices/virtual_gpu/model/gpu_fit.h"
#include "engine/models/zoo/catalog.h"
#include "engine/scheduler/scheduler.h"
#include "traces/base/error.h"
#include "traces/model/link.h"
#include "traces/model/policy.h"
#include "traces/model/trace.h"

namespace offprof {

/// Time that a recording spends on the costs of offloading, which only predicted times depend on.
enum class CalibrationEffort {
  kFull,   ///< as many rounds of steps as the accuracy of predicted times needs: seconds
  kBrief,  ///< as few steps as for a training script (brief_calibration)
};

/// A request of `offprof run` to the engine.
struct RunRequest {
  std::string model_path;
  RunSettings settings;         ///< empty `inputs`: the specs in the archive's extra files
  int threads = 1;              ///< intra-op threads of the compute stream
  std::string device = "host";  ///< `host`, `cuda`, `cuda:N`, `virtual:PROFILE`: see make_device
  Policy policy;
  /// Transforms whose costs are measured in addition to those that the policy's rules name; `all`: one of
  /// each. `recompute`: also determines which saved tensors can be recomputed in backward; `all` includes
  /// that.
  std::vector<std::string> transforms{};
  /// Fingerprint of the run that a plan in `policy` was made for; empty: unknown.
  std::string policy_made_for{};
  /// Fingerprint of the saved tensors that the plan numbers (fingerprint_of_saved); empty: unknown.
  std::string policy_saved_fingerprint{};
  /// Policy that takes the place of `policy` if that has a plan which was made for another run; nullopt: such
  /// a plan is refused.
  std::optional<Policy> fallback{};
  /// Folder of the parameters' file if `settings.weights` is on disk.
  std::string parameters_folder{};
  std::optional<DiskRequest> disk{};  ///< disk for tensors that the policy places on one; nullopt: none
  CalibrationEffort calibration = CalibrationEffort::kFull;  ///< of a device whose times are not modelled
  bool has_timeline = true;  ///< false: the trace has no timeline, and no steps are taken for one
};

/// A refusal: the measured steps did not fit into the device's memory.
struct MemoryRefusal {
  Bytes asked_bytes = 0;  ///< 0: before a step began
  Bytes live_bytes = 0;   ///< as requested, at the time of the refusal
  Bytes capacity_bytes = 0;
  std::optional<SavedId> reloaded{};  ///< the saved tensor that was being reloaded, if any
};

struct RunResult {
  Trace trace;
  std::optional<MemoryRefusal> refusal;  ///< if set, `trace` is the recording and nothing is measured
  std::vector<Command> commands;         ///< the scheduler's command log of the first measured step
  int steps_with_other_commands = 0;     ///< measured steps with a different command log
};

/// One of several policies, and its measurement. A visit to a policy is an untimed step, which brings memory
/// and caches into a steady state, and `timed_steps` timed steps; the result of the visit is their median.
struct ComparedPolicy {
  Policy policy;
  int timed_steps = 1;
  int visits_per_round = 1;
};

/// Several policies to measure against each other. Their visits are interleaved, so that disturbances of the
/// machine affect all alike: each of `rounds` rounds makes all visits, in an order of its own.
///
/// Copies take a different time if the distance between the core that computes and the core that copies is
/// not that of the calibration. A visit then waits, or is repeated.
struct Comparison {
  std::vector<ComparedPolicy> policies;
  int rounds = 1;
  Nanoseconds core_to_core_ns = 0;  ///< in the calibration; 0: not known, and no visit waits
  Nanoseconds patience_ns = 0;      ///< total time of waits and repetitions; then visits count as they are
};

/// The result of a run under one of several policies.
struct PolicyRun {
  Policy policy;
  /// Memory: the highest of all its steps. Times: medians over the timed steps; the step time is the median
  /// over the visits.
  Metrics measured;
  std::string gradients;                   ///< as in Trace
  std::vector<Command> commands;           ///< of its first step
  int steps_with_other_commands = 0;       ///< steps of all its visits with a different command log
  std::vector<Nanoseconds> step_times_ns;  ///< by visit, in the order of the visits
  /// The refusal (how much was requested) if the device had no memory for its steps: nothing is measured
  /// then. Empty: none.
  std::string out_of_memory{};
};

/// Results of several policies on one recording.
struct ComparisonResult {
  Trace trace;  ///< the recording: its step program, model, environment; nothing measured
  std::vector<PolicyRun> runs;
  int repeated_visits = 0;   ///< repeated because the cores had moved
  int displaced_visits = 0;  ///< counted although the cores were at the wrong distance
};

/// Reports the current activity for a progress line: `recording pass 2 of 3`.
using Progress = std::function<void(const std::string& what)>;

/// The engine library as offprof sees it. It is opened with dlopen because it loads LibTorch, which the
/// executable does without. Errors cross this boundary as Error.
class EnginePlugin {
 public:
  virtual ~EnginePlugin() = default;
  virtual std::string torch_version() const = 0;
  /// Returns the reason why nothing can be trained on that device here; empty if it can.
  virtual std::string problem_with(const std::string& device) = 0;
  /// Returns the reason why the GPU of this process, real or virtual, cannot be traced, and a remedy;
  /// nullopt: it can be. Call before any device is used.
  virtual std::optional<Error> problem_with_tracing() = 0;
  /// Trains some steps and traces them. Throws Error (input) for a model or inputs that do not fit, and Error
  /// (environment) if device memory does not suffice for the recording.
  virtual RunResult run(const RunRequest& request, const Progress& progress) = 0;
  /// Records a model once, then trains it under each policy and checks the gradients; the policy and the
  /// number of steps in `request` are ignored. If the device has no memory for a policy, that is noted and
  /// the others continue. Throws like run.
  virtual ComparisonResult compare(const RunRequest& request, const Comparison& comparison,
                                   const Progress& progress) = 0;
  /// Measures a GPU for a profile: see measure_gpu.
  virtual GpuMeasurements measure_gpu(const std::string& device, const Progress& progress) = 0;
  /// Writes a zoo model with its input specs inside. `sizes` overrides defaults of
  /// engine/models/zoo/catalog.h, which describes `weights` too.
  virtual void make_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes,
                              std::uint64_t seed, const std::string& path, const ZooWeights& parameters) = 0;
};

/// Name of the one symbol that the engine library exports: `EnginePlugin* offprof_engine_plugin()`. The
/// library owns the plugin and is never closed.
inline constexpr const char* kEnginePluginSymbol = "offprof_engine_plugin";
inline constexpr const char* kEnginePluginLibrary = "liboffprof_engine.so";

}  // namespace offprof
