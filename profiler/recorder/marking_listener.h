#pragma once

#include "engine/autograd/step_listener.h"
#include "engine/devices/compute_stream.h"
#include "profiler/recording/step_mark.h"
#include "traces/base/steady_clock.h"

namespace offprof {

/// Marks where the phases of a step begin and where its tensors are packed and unpacked, and nothing else. On
/// a GPU each mark is an event, so marks at every operator would change the step.
class MarkingListener final : public StepListener {
 public:
  /// `stream` must outlive it.
  explicit MarkingListener(ComputeStream& stream) : stream_(stream) {}

  void begin_phase() { mark(EventKind::kPhase, -1); }
  void on_pack(SavedId tensor, const at::Tensor&, const PackRequest&, const PackDecision&) override {
    mark(EventKind::kPack, tensor);
  }
  void on_unpack(SavedId tensor) override { mark(EventKind::kUnpack, tensor); }

  /// Returns the marks with stream times. The device must have been idle since the step, and must still have
  /// its marks.
  StepMarks take() {
    for (StepMark& mark : marks_) mark.stream_ns = stream_.time_of(mark.stream_ns);
    return std::move(marks_);
  }

 private:
  void mark(EventKind kind, SavedId tensor) {
    marks_.push_back({kind, static_cast<std::int32_t>(tensor), steady_now(), stream_.mark()});
  }

  ComputeStream& stream_;
  StepMarks marks_;  ///< stream_ns holds the device's mark until take
};

}  // namespace offprof
