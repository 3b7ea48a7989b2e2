#include "profiler/training/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>
#include <torch/optim/adamw.h>
#include <torch/optim/sgd.h>

#include <utility>

#include "engine/autograd/autograd_engine.h"
#include "engine/models/training_pass.h"
#include "profiler/recorder/marking_listener.h"
#include "profiler/recorder/pass_recorder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// PyTorch's default for AdamW, and a cautious value for SGD: the steps only serve to be profiled.
constexpr double kLearningRate = 1e-3;

std::unique_ptr<torch::optim::Optimizer> make_optimizer(const std::string& name,
                                                        const std::vector<at::Tensor>& parameters) {
  if (name == "none") return nullptr;
  if (name == "sgd")
    return std::make_unique<torch::optim::SGD>(parameters, torch::optim::SGDOptions(kLearningRate));
  if (name == "adamw")
    return std::make_unique<torch::optim::AdamW>(parameters, torch::optim::AdamWOptions(kLearningRate));
  throw input_error("unknown optimizer '" + name + "'", "the optimizers are none, sgd and adamw");
}

/// Copies a gradient to the host. `apart` requests separate memory even if the gradient is on the host.
at::Tensor on_host(const at::Tensor& gradient, bool apart) {
  return gradient.to(at::kCPU, /*non_blocking=*/false, /*copy=*/apart);
}

/// Reports the loads and evictions of parameters to the step's listener.
class OffloaderListenerScope {
 public:
  OffloaderListenerScope(ParameterOffloader* offloader, StepListener* listener) : offloader_(offloader) {
    if (offloader_ != nullptr) offloader_->set_listener(listener);
  }
  ~OffloaderListenerScope() {
    if (offloader_ != nullptr) offloader_->set_listener(nullptr);
  }
  OffloaderListenerScope(const OffloaderListenerScope&) = delete;
  OffloaderListenerScope& operator=(const OffloaderListenerScope&) = delete;

 private:
  ParameterOffloader* offloader_;
};

/// Stops listening at the end, since a step's graph may outlive its listener.
class ListenerScope {
 public:
  explicit ListenerScope(OffloadStep& step) : step_(step) {}
  ~ListenerScope() { step_.stop_listening(); }
  ListenerScope(const ListenerScope&) = delete;
  ListenerScope& operator=(const ListenerScope&) = delete;

 private:
  OffloadStep& step_;
};

}  // namespace

/// Records a step as its order says, and times it.
class StepRecording {
 public:
  /// Begins the step. `tracer`: see PassRecorder.
  StepRecording(Device& device, const StepOrder& order, GpuTracer* tracer)
      : device_(device), listener_(order.listener) {
    if (order.recording == Recording::kMarks) listener_ = &marks_.emplace(device);
    if (order.recording == Recording::kTimeline || order.recording == Recording::kProgram)
      listener_ = &recorder_.emplace(device, order.recording == Recording::kProgram, tracer);
    if (!recorder_) device_.take_work();
    begin_ = device_.mark();
  }

  StepListener* listener() const { return listener_; }

  void begin_phase(std::string_view name) {
    if (marks_) marks_->begin_phase();
    if (recorder_)
      recorder_->begin_phase(name);
    else if (!device_.is_virtual())
      phases_.emplace_back(name, device_.mark());
  }

  void end_step(StepResult& result) {
    if (recorder_) recorder_->end_step();
    if (marks_) marks_->begin_phase();
    end_ = device_.mark();
    if (const auto work = device_.take_work(); work && !recorder_) result.busy_ns = work->busy_ns;
  }

  /// Waits until the device is idle and stores what was recorded. Throws the first failure of a mark.
  void finish(StepResult& result) {
    if (recorder_) result.recording = recorder_->finish();
    check_marks(device_);
    device_.synchronize();
    if (marks_) result.marks = marks_->take();
    result.step_time_ns = device_.time_of(end_) - device_.time_of(begin_);
    for (std::size_t i = 0; i < phases_.size(); ++i) {
      const Device::TimeMark next = i + 1 < phases_.size() ? phases_[i + 1].second : end_;
      result.phases.emplace_back(phases_[i].first,
                                 device_.time_of(next) - device_.time_of(phases_[i].second));
    }
  }

 private:
  Device& device_;
  StepListener* listener_;
  std::optional<MarkingListener> marks_;
  std::optional<PassRecorder> recorder_;
  Device::TimeMark begin_ = Device::kFailedMark, end_ = Device::kFailedMark;
  std::vector<std::pair<std::string_view, Device::TimeMark>> phases_;
};

Trainer::Trainer(Model& model, Device& device, const RunSettings& settings, StepTracing* tracing,
                 ParameterOffloader* offloader)
    : model_(model),
      device_(device),
      loss_(settings.loss),
      seed_(settings.seed),
      tracing_(tracing),
      offloader_(offloader),
      optimizer_(make_optimizer(settings.optimizer, model.parameters)) {}

/// Releases the gradients. After a failed step, one may still be on its way to the device: this waits for it
/// while its memory exists.
void Trainer::set_gradients_to_none() {
  if (offloader_ != nullptr) offloader_->forget_gradients();
  for (at::Tensor& parameter : model_.parameters) parameter.mutable_grad() = at::Tensor();
}

/// Ends the step of the offloader: between steps no parameters are on the device, and gradients are not kept.
void Trainer::end_offloaded_step() {
  if (offloader_ == nullptr) return;
  set_gradients_to_none();
  adopt_optimizer_state();
  offloader_->end_step();
}

/// Adopts the optimizer's state in the order of parameters, since the order of its own table depends on
/// addresses and differs between runs.
void Trainer::adopt_optimizer_state() {
  if (!optimizer_) return;
  const auto& states = optimizer_->state();
  for (const at::Tensor& parameter : model_.module.parameters()) {
    const auto state = states.find(parameter.unsafeGetTensorImpl());
    if (state == states.end()) continue;
    const auto* moments = dynamic_cast<const torch::optim::AdamWParamState*>(state->second.get());
    if (moments == nullptr) continue;
    for (const at::Tensor& moment : {moments->exp_avg(), moments->exp_avg_sq()}) offloader_->adopt(moment);
  }
}

std::shared_ptr<const Residents> Trainer::residents() const {
  Residents residents = residents_of(model_, device_);
  if (offloader_ != nullptr)
    residents.is_parameter_group = [offloader = offloader_](const c10::Storage& storage) {
      return offloader->is_parameter_group(storage);
    };
  return std::make_shared<const Residents>(std::move(residents));
}

void Trainer::forward_and_backward() {
  TrainingPass pass(model_, loss_);
  pass.forward();
  pass.backward();
}

void Trainer::plain_step() {
  set_gradients_to_none();
  {
    const ParameterOffloader::Scope offloading(offloader_);
    forward_and_backward();
    if (optimizer_) optimizer_->step();
  }
  end_offloaded_step();
}

StepResult Trainer::run(const StepOrder& order) {
  set_gradients_to_none();
  end_offloaded_step();  // after a step that failed
  begin_measuring();
  StepResult result;
  result.device_resident_bytes = device_.live_bytes();
  const auto residents_now = residents();

  const bool is_traced = order.traced && tracing_ != nullptr;
  StepRecording recording(device_, order, is_traced ? tracing_->begin(*order.traced) : nullptr);
  auto step =
      std::make_shared<OffloadStep>(device_, order.policy, order.guide, residents_now, recording.listener());
  const ListenerScope listens(*step);
  const OffloaderListenerScope listens_to_offloader(offloader_, recording.listener());
  train(step, recording);
  recording.end_step(result);

  result.device_peak_bytes = device_.peak_bytes();
  result.cache_use = device_.cache_use();
  set_gradients_to_none();
  recording.finish(result);
  if (is_traced) result.gpu = tracing_->end();
  take_figures(*step, result);
  return result;
}

void Trainer::train(const std::shared_ptr<OffloadStep>& step, StepRecording& recording) {
  {
    const ParameterOffloader::Scope offloading(offloader_);
    {
      const CurrentStep current(step);
      TrainingPass pass(model_, loss_);
      recording.begin_phase("forward");
      pass.forward();
      recording.begin_phase("backward");
      pass.backward();
      step->backward_end();
    }
    recording.begin_phase("optimizer");
    if (optimizer_) optimizer_->step();
  }
  end_offloaded_step();
}

/// Stores what the device, the offloader and the step counted.
void Trainer::take_figures(const OffloadStep& step, StepResult& result) {
  result.copies = device_.take_copy_records();
  for (const CopyRecord& copy : result.copies)
    (copy.direction == CopyDirection::kD2h ? result.d2h_busy_ns : result.h2d_busy_ns) +=
        copy.end_ns - copy.begin_ns;
  if (DeviceDisk* const disk = device_.disk()) {
    result.disk_transfers = disk->take_records();
    result.disk_stored = disk->take_stored();
  }
  result.exposed_ns = device_.take_exposed_ns();
  result.host_peak_bytes = step.host_peak_bytes();
  result.host_reserved_bytes = device_.host_reserved_bytes();
  const ParameterTraffic parameters = offloader_ != nullptr ? offloader_->take_traffic() : ParameterTraffic{};
  result.d2h_bytes = step.d2h_bytes() + parameters.d2h;
  result.h2d_bytes = step.h2d_bytes() + parameters.h2d;
  result.disk_peak_bytes = step.disk().peak_bytes();
  result.disk_write_bytes = step.disk().write_bytes() + parameters.disk_write;
  result.disk_read_bytes = step.disk().read_bytes() + parameters.disk_read;
  result.disk_refusals = step.disk().refusals();
  result.refused_reloads = step.refused_reloads();
  result.ledger = step.ledger();
  result.commands = step.commands();
}

void Trainer::begin_measuring() {
  device_.synchronize();
  device_.take_copy_records();
  if (DeviceDisk* const disk = device_.disk()) {
    disk->take_records();
    disk->take_stored();
  }
  device_.take_exposed_ns();
  device_.forget_marks();
  device_.reset_peak();
  if (offloader_ != nullptr) offloader_->take_traffic();
}

std::vector<at::Tensor> Trainer::gradients(const std::optional<Policy>& policy, const StepGuide& guide) {
  const at::NoGradGuard outer_no_grad;
  const ParameterOffloader::Scope offloading(offloader_);
  std::vector<at::Tensor> buffers;
  for (const at::Tensor& buffer : model_.module.buffers()) buffers.push_back(buffer.clone());
  set_gradients_to_none();
  if (offloader_ != nullptr && !policy)
    offloader_->bring_all();  // the exact gradients do not use the offloader
  at::manual_seed(seed_);
  {
    const at::AutoGradMode grad(true);
    if (policy) {
      auto step = std::make_shared<OffloadStep>(device_, *policy, guide, residents(), nullptr);
      const CurrentStep current(step);
      forward_and_backward();
      step->backward_end();
    } else {
      accumulate_gradients_plainly(model_, loss_);
    }
  }
  std::vector<at::Tensor> result;
  // Keeps the gradients on the host, so that they do not count as device memory.
  for (at::Tensor& parameter : model_.parameters)
    result.push_back(parameter.grad().defined() ? on_host(parameter.grad(), offloader_ != nullptr)
                                                : at::Tensor());
  set_gradients_to_none();
  end_offloaded_step();
  std::size_t i = 0;
  for (at::Tensor buffer : model_.module.buffers()) buffer.copy_(buffers[i++]);
  return result;
}

}  // namespace offprof
