#pragma once

#include <algorithm>
#include <optional>
#include <string>
#include <vector>

#include "traces/calibration.h"
#include "traces/gradient_error.h"
#include "traces/ledger.h"
#include "traces/link.h"
#include "traces/metrics.h"
#include "traces/policy.h"
#include "traces/program.h"
#include "traces/shard_settings.h"
#include "traces/timeline.h"
#include "traces/tracing.h"
#include "traces/transform_cost.h"
#include "traces/weight_settings.h"

namespace offprof {

/// The schema's name and major version: a reader refuses another.
inline constexpr std::string_view kTraceSchema = "offprof.trace/1";

struct Environment {
  std::string device;                          ///< `host`
  std::string device_name;                     ///< `CPU, 2 threads of AMD EPYC ...`; no host names
  std::string torch_version;                   ///< of LibTorch
  int threads = 1;                             ///< intra-op threads of the compute stream
  Link link;                                   ///< calibrated by `run`, or assumed by `simulate`
  std::optional<Bytes> device_memory_bytes{};  ///< what the device has; nullopt: what the machine has
  bool times_are_modelled =
      false;  ///< the device is virtual: memory is what it would be, times are estimates
  /// What `link` and all else that a replay adds is taken from; nullopt: nothing was measured.
  std::optional<Calibration> calibration{};
  /// Modelled times go by this trace of a GPU: the file's name, without its folder; nullopt: by none.
  std::optional<std::string> kernel_times{};
  /// Of a GPU; nullopt: not measured.
  std::optional<MemoryBesideAllocator> beside_allocator{};
  bool operator==(const Environment&) const = default;
};

/// What of the device's memory a process can have for tensors: all but the most that was seen beside the
/// allocator. nullopt: the device has what the machine has.
inline std::optional<Bytes> usable_memory(const Environment& environment) {
  if (!environment.device_memory_bytes || !environment.beside_allocator)
    return environment.device_memory_bytes;
  return std::max<Bytes>(*environment.device_memory_bytes - environment.beside_allocator->most_bytes(), 0);
}

struct ModelInfo {
  std::string name;         ///< the file's name, without its folder
  std::string fingerprint;  ///< of the file's bytes
  std::int64_t parameters = 0;
  Bytes parameter_bytes = 0;
  bool operator==(const ModelInfo&) const = default;
};

/// What `run` takes at most, and so a trace can say.
inline constexpr std::int64_t kMostSteps = 1'000'000;
inline constexpr std::int64_t kMostThreads = 1024;

/// What `run` was told to do.
struct RunSettings {
  std::vector<std::string> inputs;  ///< specs, as `--input` takes them
  std::string loss = "auto";
  std::string optimizer = "adamw";
  int steps = 5;
  int warmup = 1;
  std::uint64_t seed = 0;
  std::optional<Bytes> device_memory_bytes;
  std::optional<Link> link_cap{};  ///< `--link`: the copies were slowed down to it
  std::optional<WeightSettings> weights{};
  /// `--segments`: patterns of the submodules that ran without saving and again in backward.
  std::vector<std::string> segments{};
  std::optional<ShardSettings> shards{};
  bool operator==(const RunSettings&) const = default;
};

/// A trace file in memory. docs/trace-format.md describes the file.
struct Trace {
  std::string tool_version;
  std::vector<std::string> argv;
  bool simulated = false;
  Environment environment;
  ModelInfo model;
  RunSettings settings;
  Policy policy;
  Program program;
  /// The program as it runs when tensors come back densely packed, as under the `trl` preset, where that
  /// differs from `program` (a saved slice or broadcast that comes back with other strides makes other
  /// operators allocate).
  std::optional<Program> dense_program;
  /// What the transforms that the policy names take, over the tensors of the program; empty: it names none.
  std::vector<TransformProfile> transforms{};
  Metrics metrics;  ///< measured, or predicted where `simulated`
  Ledger ledger;
  /// `bitwise`, or what differs, or `not applicable`; `lossy` where the policy's rules lose something, as
  /// `gradient_errors` say, by parameter; kNotReproducible and by how much. Empty where simulated.
  std::string gradients;
  std::vector<GradientError> gradient_errors{};
  std::vector<std::string> notes;  ///< what a reader of the figures should know, a sentence each
  /// Of the GPU that the run was on; nullopt: it was not traced. A simulation's trace has what it was
  /// simulated from, without its steps.
  std::optional<Tracing> tracing{};
  Timeline timeline;  ///< what the file's traceEvents show; a reader leaves it empty
};

}  // namespace offprof
