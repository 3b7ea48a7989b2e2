#pragma once

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/device_disk.h"
#include "engine/schedule/scheduler.h"
#include "engine/zoo/catalog.h"
#include "traces/error.h"
#include "traces/link.h"
#include "traces/policy.h"
#include "traces/trace.h"

namespace offprof {

/// What `offprof run` asks of the engine.
struct RunRequest {
  std::string model_path;
  RunSettings settings;         ///< empty `inputs`: those in the archive's extra files
  int threads = 1;              ///< intra-op threads of the compute stream
  std::string device = "host";  ///< `host`, `cuda`, `cuda:N`, `virtual:PROFILE`: see make_device
  Policy policy;
  /// Transforms whose costs are measured beside those that the policy's rules name; `all`: one of each.
  /// `recompute`: it is found out what can be made again in backward; `all` has that too.
  std::vector<std::string> transforms{};
  /// Fingerprint of the run that a plan in `policy` was made for; empty: not known.
  std::string policy_made_for{};
  /// Of `settings.weights` on disk: where their file goes.
  std::string weights_folder{};
  std::optional<DiskRequest> disk{};  ///< where tensors go that a policy places on a disk; nullopt: nowhere
};

/// The measured steps did not fit into the device's memory.
struct MemoryRefusal {
  Bytes asked_bytes = 0;  ///< 0: before a step began
  Bytes live_bytes = 0;   ///< as requested, when it was asked for
  Bytes capacity_bytes = 0;
  std::optional<SavedId> reloaded{};  ///< what it was asked for: to bring back that saved tensor
};

struct RunResult {
  Trace trace;
  std::optional<MemoryRefusal> refusal;  ///< there is one: `trace` is the recording, nothing is measured
  std::vector<Command> commands;         ///< the scheduler's command log of the first measured step
  int steps_with_other_commands = 0;     ///< measured steps whose log differs from that
};

/// One of several policies, and how it is measured. A visit to it is a step that is not timed, which brings
/// memory and caches into its state, and `timed_steps` more; what the visit says is their median.
struct ComparedPolicy {
  Policy policy;
  int timed_steps = 1;
  int visits_per_round = 1;
};

/// Several policies to be measured against each other. Their visits are interleaved, so that what the machine
/// does meanwhile meets them all alike: each of `rounds` goes through all visits, in an order of its own.
///
/// Where the cores that compute and copy are not as far apart as in the calibration that is held against
/// them, copying is another thing: a visit then waits, or is made again.
struct Comparison {
  std::vector<ComparedPolicy> policies;
  int rounds = 1;
  Nanoseconds core_to_core_ns = 0;  ///< of that calibration; 0: not known, and no visit waits
  Nanoseconds patience_ns = 0;      ///< what all this may take; then visits are made as it is
};

/// What a run under one of several policies came to.
struct PolicyRun {
  Policy policy;
  /// Memory: the highest of all its steps. Times: medians over the timed ones, the step's over the visits.
  Metrics measured;
  std::string gradients;                   ///< as in Trace
  std::vector<Command> commands;           ///< of its first step
  int steps_with_other_commands = 0;       ///< steps of all its visits whose commands differ from those
  std::vector<Nanoseconds> step_times_ns;  ///< by visit, in the order in which they were made
  /// The device had no memory for its steps: how much was asked for. Nothing is measured then. Empty: it had.
  std::string out_of_memory{};
};

/// Several policies on one recording.
struct ComparisonResult {
  Trace trace;  ///< the recording: its program, model, environment; nothing measured
  std::vector<PolicyRun> runs;
  int repeated_visits = 0;   ///< that were made again, since the cores moved meanwhile
  int displaced_visits = 0;  ///< that count although the cores were not where they should be
};

/// Says what is being done, for a progress line: `recording pass 2 of 3`.
using Progress = std::function<void(const std::string& what)>;

/// The engine library as the program sees it. It is opened with dlopen, since it brings LibTorch, which the
/// program does without. Errors cross this border as Error.
class EnginePlugin {
 public:
  virtual ~EnginePlugin() = default;
  virtual std::string torch_version() const = 0;
  /// Why nothing can be trained on that device here; empty where it can.
  virtual std::string problem_with(const std::string& device) = 0;
  /// Why the GPU of this process, real or virtual, cannot be traced, and what helps; nullopt: it can. To be
  /// asked before any device is used.
  virtual std::optional<Error> problem_with_tracing() = 0;
  /// Trains some steps and traces them. Throws Error: a model or inputs that do not fit (input), device
  /// memory that does not suffice for the recording (environment).
  virtual RunResult run(const RunRequest& request, const Progress& progress) = 0;
  /// Records a model once and then trains it under each policy, gradients checked; policy and number of steps
  /// in `request` play no part. A policy that the device has no memory for is noted, and the others go on.
  /// Throws like run.
  virtual ComparisonResult compare(const RunRequest& request, const Comparison& comparison,
                                   const Progress& progress) = 0;
  /// Writes a model of the zoo with its input specs inside. `sizes` overrides defaults of
  /// engine/zoo/catalog.h, which describes `weights` too.
  virtual void make_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes,
                              std::uint64_t seed, const std::string& path, const ZooWeights& weights) = 0;
};

/// Name of the one symbol that the engine library exports: `EnginePlugin* offprof_engine_plugin()`. It is
/// owned by the library, which is never closed.
inline constexpr const char* kEnginePluginSymbol = "offprof_engine_plugin";
inline constexpr const char* kEnginePluginLibrary = "liboffprof_engine.so";

}  // namespace offprof
