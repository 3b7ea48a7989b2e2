#pragma once

#include <algorithm>
#include <optional>

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
inline DeviceMemory usable_of_device(const Trace& trace, Bytes usable) {
  return {usable, std::max(usable, trace.environment.device_memory_bytes.value_or(0))};
}

/// The step, or steps, of a trace, ready for replay: under TRL's rules tensors come back dense, and where
/// that makes a difference the trace has a program of its own for it. The trace must outlive it.
class TraceSteps {
 public:
  /// `assumed`: the device's memory; nullopt: what the trace's run had.
  explicit TraceSteps(const Trace& trace, const std::optional<DeviceMemory>& assumed = {})
      : program_(trace.program),
        step_(trace.program, costs_in(trace), trace.transforms),
        cache_setting_(cache_setting_of(trace)) {
    if (assumed) {
      cache_setting_.device_memory_bytes = assumed->usable_bytes;
      cache_setting_.device_total_bytes = assumed->total_bytes;
    }
    if (!trace.dense_program) return;
    dense_program_ = &*trace.dense_program;
    dense_step_.emplace(*dense_program_, costs_in(trace), trace.transforms);
  }

  /// All that is known beforehand of a step under `policy`: a replay, with the caching allocator's figures.
  Metrics predict(const Policy& policy, const Link& link) const {
    return with_cache(policy, replay(step(policy), policy, link).metrics);
  }

  /// What a replay under `policy` came to, with the caching allocator's figures over as many steps as the run
  /// measured, where the device has one: what it takes within the device's memory, or, where that is not
  /// enough, what it would take without end.
  Metrics with_cache(const Policy& policy, Metrics replayed) const {
    if (const auto cache = predict_cache(step(policy), policy, cache_setting_)) {
      replayed.device_allocated_peak_bytes = cache->use.allocated_peak_bytes;
      replayed.device_reserved_peak_bytes = cache->use.reserved_peak_bytes;
    }
    return replayed;
  }

  /// Whether steps under `policy` run within that much of the device's memory.
  bool fits(const Policy& policy, Bytes device_memory) const {
    const auto cache = predict_cache(
        step(policy), policy, {cache_setting_.steps, device_memory, cache_setting_.device_total_bytes});
    if (cache) return cache->fits;
    return *replay(step(policy), policy, kAnyLink).metrics.device_peak_bytes <= device_memory;
  }

  const Program& program(const Policy& policy) const { return is_dense(policy) ? *dense_program_ : program_; }
  const Step& step(const Policy& policy) const { return is_dense(policy) ? *dense_step_ : step_; }

 private:
  static EngineCosts costs_in(const Trace& trace) {
    const auto& calibration = trace.environment.calibration;
    return calibration ? costs_of(*calibration) : EngineCosts{};
  }

  static CacheSetting cache_setting_of(const Trace& trace) {
    const auto& asked = trace.settings.device_memory_bytes;
    const auto& total = trace.environment.device_memory_bytes;
    return {trace.settings.steps, asked ? asked : total, total.value_or(0)};
  }

  bool is_dense(const Policy& policy) const {
    return policy.scheduler == SchedulerKind::kTrl && dense_program_ != nullptr;
  }

  const Program& program_;
  const Program* dense_program_ = nullptr;
  Step step_;
  std::optional<Step> dense_step_;
  CacheSetting cache_setting_;
};

}  // namespace offprof
