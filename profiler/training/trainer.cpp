#include "profiler/training/trainer.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>
#include <ATen/core/grad_mode.h>

#include <utility>

#include "engine/autograd/autograd_engine.h"
#include "engine/models/training_pass.h"
#include "traces/base/error.h"

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

/// Ends the step of the offloader: between steps no parameters are on the device, and gradients are not kept.
void Trainer::end_offloaded_step() {
  if (offloader_ == nullptr) return;
  set_gradients_to_none();
  if (optimizer_) {
    for (const at::Tensor& parameter : model_.module.parameters()) {
      for (const at::Tensor& state : optimizer_->states_of(parameter)) offloader_->adopt(state);
      offloader_->adopt(optimizer_->master_of(parameter));
    }
  }
  offloader_->end_step();
}

OptimizerMemory Trainer::optimizer_memory() const {
  OptimizerMemory memory;
  if (!optimizer_) return memory;
  for (const at::Tensor& parameter : model_.parameters) {
    for (const at::Tensor& state : optimizer_->states_of(parameter))
      memory.states += static_cast<Bytes>(state.nbytes());
    if (const at::Tensor master = optimizer_->master_of(parameter); master.defined())
      memory.master_weights += static_cast<Bytes>(master.nbytes());
  }
  return memory;
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
  refuse_unpredictable_model();
}

StepResult Trainer::run(const StepOrder& order) {
  set_gradients_to_none();
  end_offloaded_step();  // after a step that failed
  if (offloader_ != nullptr) offloader_->take_traffic();
  MeasuredStep measured(device_, order, residents(), tracing_);
  const OffloaderListenerScope listens_to_offloader(offloader_, measured.listener());
  train(measured);
  measured.end();
  set_gradients_to_none();
  StepResult result = measured.finish();
  if (offloader_ != nullptr) add_parameter_traffic(result);
  refuse_unpredictable_model();
  return result;
}

void Trainer::refuse_unpredictable_model() {
  if (const auto refusal = device_.take_model_refusal()) throw Error(*refusal);
}

void Trainer::train(MeasuredStep& measured) {
  {
    const ParameterOffloader::Scope offloading(offloader_);
    {
      const CurrentStep current(measured.step());
      TrainingPass pass(model_, loss_);
      measured.begin_phase("forward");
      pass.forward();
      measured.begin_phase("backward");
      pass.backward();
      measured.step()->backward_end();
    }
    measured.begin_phase("optimizer");
    if (optimizer_) optimizer_->step();
  }
  end_offloaded_step();
}

void Trainer::add_parameter_traffic(StepResult& result) {
  const ParameterTraffic parameters = offloader_->take_traffic();
  result.d2h_bytes += parameters.d2h;
  result.h2d_bytes += parameters.h2d;
  result.disk_write_bytes += parameters.disk_write;
  result.disk_read_bytes += parameters.disk_read;
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
  accumulate_gradients(policy, guide);
  std::vector<at::Tensor> result = gradients_on_host();
  set_gradients_to_none();
  end_offloaded_step();
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
