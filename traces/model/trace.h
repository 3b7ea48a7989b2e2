#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "traces/model/calibration.h"
#include "traces/model/gradient_error.h"
#include "traces/model/ledger.h"
#include "traces/model/link.h"
#include "traces/model/metrics.h"
#include "traces/model/parameter_settings.h"
#include "traces/model/policy.h"
#include "traces/model/slice_settings.h"
#include "traces/model/step_program.h"
#include "traces/model/timeline.h"
#include "traces/model/tracing.h"
#include "traces/model/transform_cost.h"

namespace offprof {

/// Name and major version of the schema. A reader rejects any other.
inline constexpr std::string_view kTraceSchema = "offprof.trace/1";

struct Environment {
  std::string device;                          ///< `host`
  std::string device_name;                     ///< `CPU, 2 threads of AMD EPYC ...`; no host names
  std::string torch_version;                   ///< version of LibTorch
  int threads = 1;                             ///< intra-op threads for compute
  Link link;                                   ///< calibrated by `run`, or assumed by `simulate`
  std::optional<Bytes> device_memory_bytes{};  ///< memory of the device; nullopt: that of the machine
  /// The device is virtual: memory use is that of the modelled device, times are estimates.
  bool times_are_modelled = false;
  /// Source of `link` and of all other costs that a replay adds; nullopt: nothing was measured.
  std::optional<Calibration> calibration{};
  /// GPU trace that the modelled times come from: the file's name without its folder; nullopt: none.
  std::optional<std::string> kernel_times{};
  /// On a GPU, or of a virtual one's profile; nullopt: not known.
  std::optional<MemoryBesideAllocator> beside_allocator{};
  bool operator==(const Environment&) const = default;
};

/// Returns the device memory that a process can use for tensors: all except the most that was in use beside
/// the allocator. nullopt: the device uses the machine's memory.
inline std::optional<Bytes> usable_memory(const Environment& environment) {
  if (!environment.device_memory_bytes || !environment.beside_allocator)
    return environment.device_memory_bytes;
  return std::max<Bytes>(*environment.device_memory_bytes - environment.beside_allocator->most_bytes(), 0);
}

/// Memory of an optimizer, wherever it is: on the device, or offloaded with the parameters.
struct OptimizerMemory {
  Bytes states = 0;
  Bytes master_weights = 0;

  bool operator==(const OptimizerMemory&) const = default;
};

struct ModelInfo {
  /// Name of the model of a memory snapshot, of which nothing else is known.
  static constexpr const char* kMemorySnapshot = "memory snapshot";

  std::string name;         ///< name of the file without its folder
  std::string fingerprint;  ///< fingerprint of the file's bytes
  std::int64_t parameters = 0;
  Bytes parameter_bytes = 0;
  std::optional<OptimizerMemory> optimizer{};  ///< memory of its optimizer; nullopt: not known
  Bytes held_gradient_bytes = 0;               ///< of gradients that are there when a step begins

  bool is_memory_snapshot() const { return name == kMemorySnapshot; }
  bool operator==(const ModelInfo&) const = default;
};

/// Upper limits of `run`, and so of the values in a trace.
inline constexpr std::int64_t kMostSteps = 1'000'000;
inline constexpr std::int64_t kMostThreads = 1024;

/// RunSettings::loss and RunSettings::optimizer of a training script, which has its own.
inline constexpr const char* kOfScript = "script";

/// Settings of `run`.
struct RunSettings {
  std::vector<std::string> inputs;  ///< input specifications in the syntax of `--input`
  std::string loss = "auto";
  std::string optimizer = "adamw";
  int steps = 5;
  int warmup = 1;
  std::uint64_t seed = 0;
  std::optional<Bytes> device_memory_bytes;
  std::optional<Link> link_cap{};  ///< `--link`: the copies were slowed down to this link
  std::optional<ParameterSettings> parameters{};
  /// `--checkpoint`: patterns of the checkpointed modules, which run without saving and run again in
  /// backward.
  std::vector<std::string> checkpointed{};
  std::optional<SliceSettings> slices{};
  std::string loaded_from{};  ///< `--load`: checkpoint of the parameters and buffers; empty: the model's own
  bool operator==(const RunSettings&) const = default;
};

/// Content of a trace file. docs/reference/trace-format.md describes the file.
struct Trace {
  std::string tool_version;
  std::vector<std::string> argv;
  bool simulated = false;
  Environment environment;
  ModelInfo model;
  RunSettings settings;
  StepSize step_size{};  ///< of the recorded step, as counted; input specifications are not used
  /// The program also makes steps of other shapes, which are not recorded.
  bool steps_differ = false;
  Policy policy;
  StepProgram program;
  /// Step program with tensors that come back densely packed, as under the `trl` preset. Only set if it
  /// differs from `program`: a saved slice or broadcast that comes back with other strides makes other
  /// operators allocate.
  std::optional<StepProgram> dense_program;
  /// Cost of the transforms that the policy names, for the tensors of the step program; empty: it names none.
  std::vector<TransformProfile> transforms{};
  Metrics metrics;  ///< measured, or predicted where `simulated`
  Ledger ledger;
  /// Verdict on the gradients: `bitwise`, or a description of the differences, or `not applicable`, or
  /// `lossy` if the policy's rules are lossy (`gradient_errors` then has the errors by parameter), or
  /// kNotReproducible with the size of the difference. Empty if simulated.
  std::string gradients;
  std::vector<GradientError> gradient_errors{};
  std::vector<std::string> notes;  ///< facts that a reader of the figures should know, one sentence each
  /// Tracing of the GPU that the run was on; nullopt: not traced. A simulated trace has the tracing of the
  /// trace that it was simulated from, without its steps.
  std::optional<Tracing> tracing{};
  Timeline timeline;  ///< content of the file's traceEvents; a reader leaves it empty
};

}  // namespace offprof
