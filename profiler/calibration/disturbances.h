#pragma once

#include <c10/core/Storage.h>

#include <cstddef>
#include <functional>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/autograd/step_listener.h"
#include "engine/devices/device.h"
#include "engine/devices/host_memory.h"
#include "traces/model/calibration.h"
#include "traces/model/copy_record.h"

namespace offprof {

/// Lengths of the pauses, as if compute waited for a copy: from short to so long that a longer one costs no
/// more.
inline constexpr Nanoseconds kStandstills[] = {300'000, 3'000'000};
/// A step with pauses stands still for about as long as it computes, but at least for this time.
inline constexpr Nanoseconds kLeastStanding = 10'000'000;

/// Returns the time on the clock that measures the calling thread. The marks of a device that computes on the
/// host are times, so that such a device may have its own clock.
Nanoseconds now_on(Device& device);

/// Keeps the calling thread busy for that time.
void stand_still(Device& device, Nanoseconds duration);

/// Calls a function at each hook of a step that keeps everything.
class HookAction final : public StepListener {
 public:
  explicit HookAction(std::function<void()> action) : action_(std::move(action)) {}

  void on_pack(SavedId, const at::Tensor&, const PackRequest&, const PackDecision&) override { action_(); }
  void on_unpack(SavedId) override { action_(); }

 private:
  std::function<void()> action_;
};

/// Copies in both directions, one at each call. Nothing waits for them. They cycle through more memory than
/// most caches hold, like the copies of a step.
class CopiesBeside {
 public:
  /// Each copy has so many bytes. `device` must outlive the object.
  CopiesBeside(Device& device, Bytes bytes);

  void copy();

  Bytes copied() const { return copies_ * bytes_; }
  /// Returns the time that requesting copies took of the model's thread; 0 if the host does not compute.
  Nanoseconds asking_ns() const { return device_.torch_device().is_cpu() ? asking_ns_ : 0; }

 private:
  Device& device_;
  Bytes bytes_;
  c10::Storage from_device_, to_device_;
  HostMemory to_host_, from_host_;
  std::int64_t copies_ = 0;
  Nanoseconds asking_ns_ = 0;
  IdleAtEnd idle_at_end_;
};

/// Returns the size of one of `copies` in both directions that keep each copy stream busy for about half of
/// `duration`.
Bytes bytes_beside(const Link& link, Nanoseconds duration, std::size_t copies);

/// Returns the time per MiB beyond the latency of the copies; nullopt: none was copied.
std::optional<Nanoseconds> time_per_mib(std::span<const CopyRecord> copies, CopyDirection direction,
                                        Nanoseconds latency);

/// Summarizes losses. Noise may make a loss negative; it then counts as 0.
MeasuredQuartiles summarize_losses(std::vector<Nanoseconds> losses);

/// Returns true if the distance of the cores changed during steps (`in_steps`), or since the copies were
/// measured (`before`).
bool did_cores_move(const MeasuredQuartiles& in_steps, const std::vector<Nanoseconds>& before);

}  // namespace offprof
