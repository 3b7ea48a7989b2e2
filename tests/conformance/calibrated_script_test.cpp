// Scripts recorded on a GPU whose costs are measured, in steps of the program that are not recorded.

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <gtest/gtest.h>

#include <memory>
#include <optional>
#include <utility>
#include <vector>

#include "engine/autograd/autograd_engine.h"
#include "engine/devices/factory/device_factory.h"
#include "engine/devices/virtual_gpu/stand_in.h"
#include "profiler/script/script_session.h"
#include "profiler/stages/measure_policy.h"
#include "simulator/steps/trace_steps.h"
#include "tests/conformance/device_wrapper.h"

namespace offprof {
namespace {

/// A virtual GPU whose costs are measured, as those of a real one are.
class GpuOfUnknownCosts : public DeviceWrapper {
 public:
  using DeviceWrapper::DeviceWrapper;
  std::optional<Link> known_link() const override { return std::nullopt; }
};

/// A device that is taken for a real GPU.
class RealGpu : public DeviceWrapper {
 public:
  using DeviceWrapper::DeviceWrapper;
  bool is_virtual() const override { return false; }
};

std::unique_ptr<Device> open_gpu() {
  VirtualGpuOptions options;
  options.profile = load_profile("h200");
  offprof_virtual_gpu()->configure(std::move(options));
  return make_device("virtual:h200", Link{});
}

/// A program that frees its gradients in the step after the one that computed them, as zero_grad does at the
/// beginning of a step. So each step frees older storages, which lie elsewhere in each step.
class Program {
 public:
  explicit Program(c10::Device device) : device_(device) {
    for (at::Tensor& weight : weights_) weight = at::ones({256, 256}, device_).set_requires_grad(true);
  }
  void step(ScriptSession& session) {
    for (at::Tensor& weight : weights_) weight.mutable_grad() = at::Tensor();
    at::Tensor hidden = at::ones({64, 256}, device_);
    for (const at::Tensor& weight : weights_) hidden = at::mm(hidden, weight).tanh();
    const at::Tensor loss = hidden.mean();
    session.begin_phase(ScriptPhase::kBackward);
    loss.backward();
    session.end_backward();
  }
  ProgramTensors tensors() const { return {{weights_[0], weights_[1], weights_[2]}, {}}; }

 private:
  c10::Device device_;
  at::Tensor weights_[3];
};

TEST(CalibratedScript, TheAllocatorStateIsThatInWhichMeasuredStepsBegin) {
  install_autograd_engine();
  const auto opened = open_gpu();
  GpuOfUnknownCosts device(*opened);
  ScriptRequest request;
  request.run.model_path = "train.py";
  request.run.policy = preset_policy("keep");
  request.has_default_steps = true;
  ScriptSession session(request, device, [](const std::string&) {});
  Program program(device.torch_device());
  while (session.begin_step(program.tensors())) program.step(session);
  const Trace& trace = session.result().trace;
  const Metrics predicted = TraceSteps(trace).predict(trace.policy, trace.environment.link);
  EXPECT_EQ(trace.metrics.device_peak_bytes, predicted.device_peak_bytes);
  EXPECT_EQ(trace.metrics.device_allocated_peak_bytes, predicted.device_allocated_peak_bytes);
  EXPECT_EQ(trace.metrics.device_reserved_peak_bytes, predicted.device_reserved_peak_bytes);
}

StepResult step_of(Nanoseconds time, Bytes peak) {
  StepResult step;
  step.step_time_ns = time;
  step.device_peak_bytes = peak;
  return step;
}

/// The cache was released before the first step, which therefore waits for new memory.
TEST(CalibratedScript, TheTimeOfTheFirstStepDoesNotCountOnAGpu) {
  const auto opened = open_gpu();
  RealGpu gpu(*opened);
  const std::vector<StepResult> steps = {step_of(900, 8), step_of(500, 4)};
  EXPECT_EQ(figures_of_trained(steps, {}, gpu).step_time_ns, 500);
  EXPECT_EQ(figures_of_trained(steps, {}, gpu).device_peak_bytes, 8);
  EXPECT_EQ(steps_to_train(1, gpu), 2);
  EXPECT_EQ(steps_to_train(3, gpu), 3);
  EXPECT_EQ(steps_to_train(1, *opened), 1);
}

}  // namespace
}  // namespace offprof
