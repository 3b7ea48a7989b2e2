#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/cache_replay.h"
#include "simulator/replay.h"
#include "simulator/step.h"
#include "traces/policy.h"
#include "traces/trace.h"

namespace offprof {

/// What is assumed of a device's memory: that steps may take so much of so much in all. The allocator's
/// settings name fractions of the latter.
struct DeviceMemory {
  Bytes usable_bytes = 0;
  Bytes total_bytes = 0;
};

/// Of a trace's device so much may be taken. One that has less in all is taken to have as much.
DeviceMemory usable_of_device(const Trace& trace, Bytes usable);

/// The step, or steps, of a trace, ready for replay: under TRL's rules tensors come back dense, and where
/// that makes a difference the trace has a program of its own for it. The trace must outlive it.
class TraceSteps {
 public:
  /// `assumed`: the device's memory; nullopt: what the trace's run had.
  explicit TraceSteps(const Trace& trace, const std::optional<DeviceMemory>& assumed = {});

  /// All that is known beforehand of a step under `policy`: a replay, with the caching allocator's figures.
  Metrics predict(const Policy& policy, const Link& link) const;

  /// What a replay under `policy` came to, with the caching allocator's figures over as many steps as the run
  /// measured, where the device has one: what it takes within the device's memory, or, where that is not
  /// enough, what it would take without end.
  Metrics with_cache(const Policy& policy, Metrics replayed) const;

  /// Whether steps under `policy` run within that much of the device's memory.
  bool fits(const Policy& policy, Bytes device_memory) const;

  const Program& program(const Policy& policy) const { return is_dense(policy) ? *dense_program_ : program_; }
  const Step& step(const Policy& policy) const { return is_dense(policy) ? *dense_step_ : step_; }

  /// What the trace says that packing takes.
  std::span<const TransformProfile> transforms() const { return transforms_; }

  /// Empty where a replay under `policy` is exact: the trace has the program of such a step. Else why it need
  /// not be, in a sentence: the setting brings some tensors back in another layout and others not, and the
  /// step may be a third program.
  std::string inexactness(const Policy& policy) const;

 private:
  /// Which of the recorded programs a step does.
  enum class Recorded { kAsSaved, kDense, kNeither };

  Recorded recorded_of(const Policy& policy) const;
  bool is_dense(const Policy& policy) const { return recorded_of(policy) != Recorded::kAsSaved; }
  Metrics with_cache(const Step& step, const Policy& policy, Metrics replayed) const;

  std::span<const TransformProfile> transforms_;
  const Program& program_;
  const Program* dense_program_ = nullptr;
  Step step_;
  std::optional<Step> dense_step_;
  std::vector<SavedId> changed_;  ///< what dense_program_ was recorded with in another layout
  CacheSetting cache_setting_;
};

}  // namespace offprof
