#pragma once

#include <optional>
#include <string>
#include <vector>

#include "simulator/replay/replay.h"
#include "simulator/replay/step.h"
#include "simulator/steps/cache_replay.h"
#include "traces/model/policy.h"
#include "traces/model/trace.h"

namespace offprof {

/// Assumed device memory: the bytes that steps may take, and the total. The allocator's settings name
/// fractions of the total.
struct MemoryCapacity {
  Bytes usable_bytes = 0;
  Bytes total_bytes = 0;
};

/// Returns the memory of the trace's device with `usable` bytes usable. The total is at least `usable`, even
/// if the device has less.
MemoryCapacity usable_of_device(const Trace& trace, Bytes usable);

/// Returns the memory that was given to the virtual GPU of the trace's run, which may be more than the device
/// has. nullopt: none was given.
std::optional<MemoryCapacity> memory_of_run(const Trace& trace);

/// The step, or steps, of a trace, prepared for replay. Under TRL's rules tensors come back dense; if that
/// makes a difference, the trace has a separate step program for it. The trace must outlive the object.
class TraceSteps {
 public:
  /// Prepares the steps of `trace`. `assumed`: the device's memory; nullopt: the memory that the trace's run
  /// had.
  explicit TraceSteps(const Trace& trace, const std::optional<MemoryCapacity>& assumed = {});

  /// Predicts a step under `policy`: replays it, and adds the caching allocator's figures.
  Metrics predict(const Policy& policy, const Link& link) const;
  /// Same, but returns nullopt, and sooner, if the step takes more than `most_taken` (device_bytes_taken).
  std::optional<Metrics> predict_within(Bytes most_taken, const Policy& policy, const Link& link) const;

  /// Adds the caching allocator's figures to `replayed`, the result of a replay under `policy`, if the device
  /// has such an allocator. They cover as many steps as the run measured. They are the memory taken within
  /// the device's limit or, if that is not enough, the memory that would be taken without a limit.
  Metrics with_cache(const Policy& policy, Metrics replayed) const;

  /// Returns the caching allocator's reserved memory over a step, within the limit that with_cache assumes.
  std::vector<ReservedAtEvent> reserved_over_step(const Policy& policy) const {
    return offprof::reserved_over_step(step(policy), policy, cache_setting_);
  }

  /// Returns the device memory that steps can take: the assumed memory or, if none was assumed, that of the
  /// trace's run, but no more than the device has. nullopt: no limit is known.
  std::optional<Bytes> device_memory_bytes() const { return cache_setting_.device_memory_bytes; }

  /// Returns true if steps under `policy` run within `device_memory` bytes of the device.
  bool fits(const Policy& policy, Bytes device_memory) const;

  const StepProgram& program(const Policy& policy) const {
    return is_dense(policy) ? *dense_program_ : program_;
  }
  const Step& step(const Policy& policy) const { return is_dense(policy) ? *dense_step_ : step_; }

  /// The transforms whose costs the trace has measured.
  std::span<const TransformProfile> transforms() const { return transforms_; }

  /// Returns true if the trace has the program of a step under `policy`. If not, the setting brings back some
  /// tensors in another layout and others not, so the step may be a third program.
  bool has_program_of(const Policy& policy) const { return recorded_of(policy) != Recorded::kNeither; }
  /// Returns an empty string if a replay under `policy` is exact. Otherwise returns a sentence that says why
  /// it may be inexact: the trace has no program of such a step, saved tensors outlive the step, or the
  /// program makes steps of other shapes too.
  std::string inexactness(const Policy& policy) const;

 private:
  /// The recorded program that a step executes.
  enum class Recorded { kAsSaved, kDense, kNeither };

  Recorded recorded_of(const Policy& policy) const;
  CacheSetting cache_over(const Link& link) const;
  bool is_dense(const Policy& policy) const { return recorded_of(policy) != Recorded::kAsSaved; }

  std::span<const TransformProfile> transforms_;
  const StepProgram& program_;
  const StepProgram* dense_program_ = nullptr;
  Step step_;
  std::optional<Step> dense_step_;
  std::vector<SavedId> changed_;  ///< the tensors whose layout had changed when dense_program_ was recorded
  CacheSetting cache_setting_;
  bool steps_differ_;
};

}  // namespace offprof
