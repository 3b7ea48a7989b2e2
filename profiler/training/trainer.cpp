#include "profiler/training/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "engine/autograd/autograd_engine.h"
#include "engine/models/training_pass.h"
#include "profiler/training/optimizer.h"
#include "profiler/training/step_counters.h"
#include "profiler/training/step_recording.h"

namespace offprof {
namespace {

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

/// Ends the step of the pager: between steps no parameters are on the device, and gradients are not kept.
void Trainer::end_pages() {
  if (offloader_ == nullptr) return;
  set_gradients_to_none();
  if (optimizer_) {
    for (const at::Tensor& parameter : model_.module.parameters())
      for (const at::Tensor& moment : moments_of(*optimizer_, parameter)) offloader_->adopt(moment);
  }
  offloader_->end_step();
}

std::shared_ptr<const Residents> Trainer::residents() const {
  Residents residents = residents_of(model_, device_);
  if (offloader_ != nullptr)
    residents.is_paged = [offloader = offloader_](const c10::Storage& storage) {
      return offloader->is_page(storage);
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
    const ParameterOffloader::Scope paged(offloader_);
    forward_and_backward();
    if (optimizer_) optimizer_->step();
  }
  end_pages();
  refuse_unpredictable_model();
}

StepResult Trainer::run(const StepOrder& order) {
  StepResult result;
  prepare(result);
  const auto residents_now = residents();
  const bool is_traced = order.traced && tracing_ != nullptr;
  StepRecording recording(device_, order, is_traced ? tracing_->begin(*order.traced) : nullptr);
  const auto step =
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
  take_counters(device_, offloader_, *step, result);
  refuse_unpredictable_model();
  return result;
}

void Trainer::refuse_unpredictable_model() {
  if (const auto refusal = device_.take_model_refusal()) throw Error(*refusal);
}

/// Makes the device as it is between steps, also after a step that failed, and begins to count.
void Trainer::prepare(StepResult& result) {
  set_gradients_to_none();
  end_pages();
  reset_counters(device_, offloader_);
  result.device_resident_bytes = device_.live_bytes();
}

/// Runs forward, backward and the optimizer.
void Trainer::train(const std::shared_ptr<OffloadStep>& step, StepRecording& recording) {
  {
    const ParameterOffloader::Scope paged(offloader_);
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
  end_pages();
}

std::vector<at::Tensor> Trainer::gradients(const std::optional<Policy>& policy, const StepGuide& guide) {
  const at::NoGradGuard outer_no_grad;
  const ParameterOffloader::Scope paged(offloader_);
  std::vector<at::Tensor> buffers;
  for (const at::Tensor& buffer : model_.module.buffers()) buffers.push_back(buffer.clone());
  set_gradients_to_none();
  if (offloader_ != nullptr && !policy) offloader_->bring_all();  // the exact gradients do not use the pager
  at::manual_seed(seed_);
  accumulate_gradients(policy, guide);
  std::vector<at::Tensor> result = gradients_on_host();
  set_gradients_to_none();
  end_pages();
  std::size_t i = 0;
  for (at::Tensor buffer : model_.module.buffers()) buffer.copy_(buffers[i++]);
  return result;
}

void Trainer::accumulate_gradients(const std::optional<Policy>& policy, const StepGuide& guide) {
  const at::AutoGradMode grad(true);
  if (!policy) return accumulate_gradients_plainly(model_, loss_);
  const auto step = std::make_shared<OffloadStep>(device_, *policy, guide, residents(), nullptr);
  const CurrentStep current(step);
  forward_and_backward();
  step->backward_end();
}

/// Copies the gradients to the host, so that they do not count as device memory.
std::vector<at::Tensor> Trainer::gradients_on_host() const {
  std::vector<at::Tensor> result;
  for (const at::Tensor& parameter : model_.parameters)
    result.push_back(parameter.grad().defined() ? on_host(parameter.grad(), offloader_ != nullptr)
                                                : at::Tensor());
  return result;
}

}  // namespace offprof
