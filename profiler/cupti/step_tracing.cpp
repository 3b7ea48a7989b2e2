#include "profiler/cupti/step_tracing.h"

#include <utility>

#include "profiler/cupti/open_tracer.h"
#include "traces/error.h"

namespace offprof {
namespace {

std::string reason_of(const Error& error) {
  return error.hint().empty() ? error.what() : std::string(error.what()) + " (" + error.hint() + ")";
}

}  // namespace

StepTracing StepTracing::of_device(const std::string& device) {
  StepTracing tracing;
  if (device == "host") return tracing;
  try {
    tracing.tracer_ = open_gpu_tracer();
  } catch (const Error& error) {
    tracing.give_up(reason_of(error));
  }
  return tracing;
}

void StepTracing::give_up(const std::string& why) {
  tracer_.reset();
  notes_.push_back(
      "the GPU was not traced, so the timeline has no kernels and no calls, and its copies are "
      "timed by events: " +
      why);
}

GpuTracer* StepTracing::begin() {
  if (!tracer_) return nullptr;
  try {
    tracer_->begin(TraceDetail::kAll);
  } catch (const Error& error) {
    give_up(reason_of(error));
  }
  return tracer_.get();
}

GpuActivity StepTracing::end() {
  if (!tracer_) return {};
  GpuActivity activity = tracer_->end();
  count(activity);
  return activity;
}

void StepTracing::count(const GpuActivity& activity) {
  dropped_ += activity.dropped_records;
  untimed_ += activity.untimed_records;
  unreadable_buffers_ += activity.unreadable_buffers;
}

std::vector<std::string> StepTracing::take_notes() {
  const auto note = [&](std::size_t& count, const std::string& what) {
    if (count > 0) notes_.push_back(std::to_string(std::exchange(count, 0)) + what);
  };
  note(dropped_, " records of the GPU were dropped for want of buffers: the timeline lacks what they said");
  note(untimed_, " records of the GPU had no times and are not in the timeline");
  note(unreadable_buffers_, " buffers of GPU records were broken: the timeline lacks what followed there");
  return std::exchange(notes_, {});
}

}  // namespace offprof
