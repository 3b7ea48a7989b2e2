#pragma once

#include <c10/core/Storage.h>

#include <cstdint>
#include <exception>
#include <optional>
#include <vector>

#include "traces/base/error.h"
#include "traces/base/units.h"
#include "traces/model/work.h"

namespace offprof {

/// The stream that the model computes on, and its clock.
class ComputeStream {
 public:
  /// A point in the compute stream. Its time is known once the device is idle.
  using TimeMark = std::int64_t;
  /// A mark that could not be made. It has no time.
  static constexpr TimeMark kFailedMark = -1;

  virtual ~ComputeStream() = default;

  /// Throws Error (input) if the calling thread computes on another stream than the one that copies are
  /// ordered with.
  virtual void check_compute_stream() {}
  /// Returns true if the storage's memory belongs to another stream: it could be used again before a copy of
  /// it has ended. Batches that a stream of their own loads, and gathered parameters (FSDP), have such
  /// memory.
  virtual bool is_of_other_stream(const c10::Storage& storage) const {
    (void)storage;
    return false;
  }
  /// Throws Error (input) if the storage is of another stream.
  virtual void check_stream_of(const c10::Storage& storage) { (void)storage; }
  /// Returns the Error that these threw last since the last call, if any. See
  /// take_host_refusal.
  virtual std::optional<Error> take_stream_refusal() { return std::nullopt; }

  /// Begins or ends work of the engine's own on the compute stream, such as an encoding. The operator of the
  /// program within which that may be is not to be taken for larger.
  virtual void begin_own_work() {}
  virtual void end_own_work() {}

  /// Marks the compute stream. May be called on any thread, at any time. It is called in destructors and
  /// deleters, so it throws nothing: on failure it returns kFailedMark, and the device keeps the first
  /// failure for take_mark_failure.
  virtual TimeMark mark() noexcept = 0;
  /// Returns the first failure of `mark` since the last call or the last forget_marks; nullptr: none.
  virtual std::exception_ptr take_mark_failure() { return nullptr; }
  /// Waits until the device is idle.
  virtual void synchronize() = 0;
  /// Returns the time of `mark` on the device's clock. The device must have been idle since the mark was
  /// made. Throws Error (environment) for kFailedMark.
  virtual Nanoseconds time_of(TimeMark mark) const = 0;
  /// Drops all marks made so far: their times are not needed any more.
  virtual void forget_marks() {}
  /// Returns the work given to the compute stream since the last call, with its duration; nullopt: the device
  /// cannot measure it.
  virtual std::optional<Work> take_work() { return std::nullopt; }
  /// Returns the time that the compute stream lost since the last call because copies ran beside it, which no
  /// Work includes; 0 if the device cannot tell.
  virtual Nanoseconds take_compute_loss() { return 0; }
  /// Begins or ends to note the commands that take_stream_commands returns. Meanwhile take_work returns the
  /// work since the last of them.
  virtual void note_stream_commands(bool noted) { (void)noted; }
  /// Returns the commands since the last call, in order, with `event` 0; none if the device cannot tell.
  virtual std::vector<StreamCommand> take_stream_commands() { return {}; }
  /// Returns how many kernels, fills and copies all streams were given so far; 0 if the device cannot tell.
  virtual std::int64_t commands_given() const { return 0; }
  /// Returns what the operators since the last call processed, without samples; nullopt: it is not counted.
  virtual std::optional<StepSize> take_step_size() { return std::nullopt; }
  /// Returns the time that the compute stream stalled on copies since the last call. The device must be idle.
  virtual Nanoseconds take_exposed_ns() = 0;
};

/// Throws the first failure of `mark`, if any. Call it before asking for the times of marks.
inline void check_marks(ComputeStream& stream) {
  if (const std::exception_ptr failure = stream.take_mark_failure()) std::rethrow_exception(failure);
}

/// Waits, after a failure, until the device has no work in progress. A device that cannot become idle makes
/// no more copies.
inline void become_idle(ComputeStream& stream) noexcept {
  try {
    stream.synchronize();
  } catch (...) {
  }
}

}  // namespace offprof
