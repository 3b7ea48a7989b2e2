#include "profiler/training/step_recording.h"

namespace offprof {

StepRecording::StepRecording(Device& device, const StepOrder& order, GpuTracer* tracer)
    : device_(device), listener_(order.listener) {
  if (order.recording == Recording::kMarks) listener_ = &marks_.emplace(device);
  if (order.recording == Recording::kTimeline || order.recording == Recording::kProgram)
    listener_ = &recorder_.emplace(device, order.recording == Recording::kProgram, tracer);
  if (!recorder_) device_.take_work();
  begin_ = device_.mark();
}

void StepRecording::begin_phase(std::string_view name) {
  if (marks_) marks_->begin_phase();
  if (recorder_)
    recorder_->begin_phase(name);
  else if (!device_.is_virtual())
    phases_.emplace_back(name, device_.mark());
}

void StepRecording::end_step(StepResult& result) {
  if (recorder_) recorder_->end_step();
  if (marks_) marks_->begin_phase();
  end_ = device_.mark();
  if (const auto work = device_.take_work(); work && !recorder_) result.busy_ns = work->busy_ns;
}

void StepRecording::finish(StepResult& result) {
  if (recorder_) result.recording = recorder_->finish();
  check_marks(device_);
  device_.synchronize();
  if (marks_) result.marks = marks_->take();
  result.step_time_ns = device_.time_of(end_) - device_.time_of(begin_);
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Device::TimeMark next = i + 1 < phases_.size() ? phases_[i + 1].second : end_;
    result.phases.emplace_back(phases_[i].first, device_.time_of(next) - device_.time_of(phases_[i].second));
  }
}

}  // namespace offprof
