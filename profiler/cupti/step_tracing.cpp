#include "profiler/cupti/step_tracing.h"

#include <utility>

#include "profiler/cupti/open_tracer.h"
#include "traces/base/error.h"

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
      "the GPU was not traced, so the timeline has no kernels and no CUDA calls, and its copies are "
      "timed by events: " +
      why);
}

GpuTracer* StepTracing::begin(TraceDetail detail) {
  if (!tracer_) return nullptr;
  try {
    tracer_->begin(detail);
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
  if (!summary_) {
    const TracerInfo info = tracer_->info();
    summary_ = Tracing{.tool = info.tool, .version = info.version, .host_bytes = info.host_bytes};
  }
  summary_->dropped_records += static_cast<std::int64_t>(activity.dropped_records);
  summary_->untimed_records += static_cast<std::int64_t>(activity.untimed_records);
  summary_->unreadable_buffers += static_cast<std::int64_t>(activity.unreadable_buffers);
}

std::vector<std::string> StepTracing::take_notes() {
  return std::exchange(notes_, {});
}

}  // namespace offprof
