#pragma once

#include <ATen/record_function.h>

#include <array>
#include <vector>

#include "tests/conformance/device_wrapper.h"

namespace offprof {

/// Costs on a ClockworkDevice.
struct KnownCosts {
  Nanoseconds op_ns_per_letter = 0;  ///< compute time for each letter of the operator's name
  Nanoseconds hook_ns = 0;           ///< compute time to look up a saved tensor when it is packed
  Nanoseconds launch_ns = 0;         ///< compute time for the memory of a copy out or in
  Nanoseconds event_ns = 0;          ///< compute time to wait for a copy, finished or not
  Nanoseconds enqueue_ns = 0;        ///< compute time of the request of a copy
  Nanoseconds start_ns = 0;          ///< from the end of that request to the copy's begin, on an idle queue
  struct Direction {
    Nanoseconds latency_ns = 0;
    Nanoseconds ns_per_line = 0;  ///< for each whole line
  };
  Direction out, in;

  static constexpr Bytes kLine = 128;
};

/// Host device on a virtual clock, on which everything takes its given time. Values are real. The clock
/// advances only by these costs, and when a caller reads it again and again to let time pass. Only one may
/// exist in the process.
class ClockworkDevice final : public DeviceWrapper {
 public:
  ClockworkDevice(Device& host, const KnownCosts& costs);
  ~ClockworkDevice() override;
  ClockworkDevice(const ClockworkDevice&) = delete;
  ClockworkDevice& operator=(const ClockworkDevice&) = delete;

  /// Makes later operators take `factor` times as long.
  void slow_down(Nanoseconds factor) { slowness_ = factor; }

  std::optional<AllocationId> allocation_of(const c10::Storage& storage) const override;
  c10::Storage allocate(Bytes bytes) override;
  std::byte* allocate_host(Bytes bytes) override;

  Event copy(CopyQueue queue, const CopyRequest& request) override;
  void wait(CopyQueue queue, Event event) override;
  std::vector<CopyRecord> take_copy_records() override;

  /// Reads the clock.
  TimeMark mark() noexcept override;
  Nanoseconds time_of(TimeMark mark) const override { return mark; }
  void synchronize() override;
  Nanoseconds take_exposed_ns() override { return std::exchange(exposed_ns_, 0); }

 private:
  struct Queued {
    Event inner = 0;
    Nanoseconds end_ns = 0;
  };
  static std::unique_ptr<at::ObserverContext> op_begins(const at::RecordFunction& op);
  void pass(Nanoseconds duration) const;
  void become_idle();

  static inline ClockworkDevice* current_ = nullptr;

  KnownCosts costs_;
  Nanoseconds slowness_ = 1;
  mutable Nanoseconds now_ns_ = 0;
  mutable int looks_ = 0;  ///< reads since time last advanced
  std::array<Nanoseconds, 2> queue_free_ns_{}, direction_free_ns_{};
  std::vector<Queued> copies_;
  std::vector<CopyRecord> records_;
  Nanoseconds exposed_ns_ = 0;
  at::CallbackHandle callback_;
};

}  // namespace offprof
