#include "profiler/steps/measured_step.h"

namespace offprof {

MeasuredStep::MeasuredStep(Device& device, const StepOrder& order, std::shared_ptr<const Residents> residents,
                           StepTracing* tracing, const CodeLocator& locate)
    : device_(device),
      tracing_(order.traced ? tracing : nullptr),
      leaves_cache_peaks_(order.leaves_cache_peaks),
      listener_(order.listener) {
  begin_counting();
  result_.device_resident_bytes = device_.live_bytes();
  listen(order, locate);
  counts_at_begin_ = device_.counts();
  begin_ = device_.mark();
  step_ = std::make_shared<OffloadStep>(device_, order.policy, order.guide, std::move(residents), listener_);
}

MeasuredStep::~MeasuredStep() {
  step_->stop_listening();
}

void MeasuredStep::forget_in_child() {
  step_->stop_listening();
  if (recorder_) recorder_->forget_in_child();
}

void MeasuredStep::begin_counting() {
  device_.synchronize();
  device_.take_copy_records();
  if (DeviceDisk* const disk = device_.disk()) {
    disk->take_records();
    disk->take_stored();
  }
  device_.take_exposed_ns();
  device_.forget_marks();
  if (leaves_cache_peaks_) return device_.reset_own_peak();
  device_.finish_frees();
  device_.reset_peak();
}

void MeasuredStep::listen(const StepOrder& order, const CodeLocator& locate) {
  GpuTracer* const tracer = tracing_ != nullptr ? tracing_->begin(*order.traced) : nullptr;
  if (order.recording == Recording::kMarks) listener_ = &marks_.emplace(device_);
  if (order.recording == Recording::kTimeline || order.recording == Recording::kProgram)
    listener_ = &recorder_.emplace(device_, order.recording == Recording::kProgram, tracer, locate);
  if (order.listener != nullptr) order.listener->on_step_begin();
  if (!recorder_) device_.take_work();
  device_.take_compute_loss();
}

void MeasuredStep::begin_phase(std::string_view name) {
  if (marks_) marks_->begin_phase();
  if (recorder_)
    recorder_->begin_phase(name);
  else if (!device_.is_virtual())
    phases_.emplace_back(name, device_.mark());
}

void MeasuredStep::end() {
  if (recorder_) recorder_->end_step();
  if (marks_) marks_->begin_phase();
  end_ = device_.mark();
  if (const auto work = device_.take_work(); work && !recorder_)
    result_.busy_ns = work->busy_ns + device_.take_compute_loss();
  result_.model_counts = device_.counts() - counts_at_begin_ - step_->engine_counts();
  result_.device_peak_bytes = device_.peak_bytes();
  if (!leaves_cache_peaks_) result_.cache_use = device_.cache_use();
}

StepResult MeasuredStep::finish() {
  if (recorder_) result_.recording = recorder_->finish();
  check_marks(device_);
  device_.synchronize();
  if (marks_) result_.marks = marks_->take();
  result_.step_time_ns = device_.time_of(end_) - device_.time_of(begin_);
  take_phases();
  if (tracing_ != nullptr) result_.gpu = tracing_->end();
  take_figures();
  return std::move(result_);
}

void MeasuredStep::take_phases() {
  for (std::size_t i = 0; i < phases_.size(); ++i) {
    const Device::TimeMark next = i + 1 < phases_.size() ? phases_[i + 1].second : end_;
    result_.phases.emplace_back(phases_[i].first, device_.time_of(next) - device_.time_of(phases_[i].second));
  }
}

/// Stores what the device and the step counted.
void MeasuredStep::take_figures() {
  result_.copies = device_.take_copy_records();
  for (const CopyRecord& copy : result_.copies)
    (copy.direction == CopyDirection::kD2h ? result_.d2h_busy_ns : result_.h2d_busy_ns) +=
        copy.end_ns - copy.begin_ns;
  if (DeviceDisk* const disk = device_.disk()) {
    result_.disk_transfers = disk->take_records();
    result_.disk_stored = disk->take_stored();
  }
  result_.exposed_ns = device_.take_exposed_ns();
  result_.host_peak_bytes = step_->host_peak_bytes();
  result_.host_reserved_bytes = device_.host_reserved_bytes();
  result_.d2h_bytes = step_->d2h_bytes();
  result_.h2d_bytes = step_->h2d_bytes();
  result_.disk_peak_bytes = step_->disk().peak_bytes();
  result_.disk_write_bytes = step_->disk().write_bytes();
  result_.disk_read_bytes = step_->disk().read_bytes();
  result_.disk_refusals = step_->disk().refusals();
  result_.refused_reloads = step_->refused_reloads();
  result_.ledger = step_->ledger();
  result_.commands = step_->commands();
}

}  // namespace offprof
