// Tests that tracing does not change a step on a virtual GPU, and that the tracer sees what the device
// counts.
#include <ATen/CPUGeneratorImpl.h>
#include <cupti_callbacks.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include <map>
#include <optional>

#include "engine/autograd/autograd_engine.h"
#include "engine/devices/factory/device_factory.h"
#include "engine/devices/virtual_gpu/stand_in.h"
#include "engine/models/archives/build.h"
#include "engine/models/model.h"
#include "engine/models/model_device.h"
#include "profiler/cupti/step_tracing.h"
#include "profiler/recording/gpu_figures.h"
#include "profiler/recording/tracing_cost.h"
#include "profiler/recording/work_causes.h"
#include "profiler/training/trainer.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

class TracedStep : public testing::TestWithParam<std::string> {
 protected:
  void SetUp() override {
    install_autograd_engine();
    torch::jit::setGraphExecutorOptimize(false);  // as run_job does
    torch::jit::getProfilingMode() = false;
    VirtualGpuOptions options;
    options.profile = load_profile("h200");
    offprof_virtual_gpu()->configure(std::move(options));
    tracing_.emplace(StepTracing::of_device("virtual:h200"));
    device_ = make_device("virtual:h200", Link{});
    load();
  }
  void TearDown() override {
    model_.reset();
    EXPECT_THAT(tracing_->take_notes(), IsEmpty());
  }

  void load() {
    const TestFolder folder;
    const std::string path = folder / "model.pt";
    save_zoo_model("transformer",
                   {{"batch", 2}, {"seq", 64}, {"layers", 2}, {"width", 64}, {"heads", 2}, {"vocab", 100}},
                   /*seed=*/1, path, {});
    model_.emplace(load_model(path));
    at::manual_seed(1);
    make_inputs(*model_, input_specs_in_archive(path));
    move_to_device(*model_, device_->torch_device());
  }

  /// Returns the last of three steps, because the first ones bring memory into its steady state.
  StepResult step(StepTracing* tracing) {
    Policy policy = preset_policy(GetParam());
    policy.threshold_bytes = 1024;
    RunSettings settings;
    settings.optimizer = "sgd";
    Trainer trainer(*model_, *device_, settings, tracing);
    StepResult result;
    for (int i = 0; i < 3; ++i) {
      device_->release_cache();
      result = trainer.step(policy, {}, Recording::kTimeline);
    }
    return result;
  }

  std::optional<StepTracing> tracing_;
  std::unique_ptr<Device> device_;
  std::optional<Model> model_;
};

TEST_P(TracedStep, EqualsTheUntracedStep) {
  const StepResult plain = step(nullptr), traced = step(&*tracing_);
  EXPECT_THAT(plain.gpu.work, IsEmpty());
  EXPECT_THAT(traced.gpu.work, Not(IsEmpty()));
  EXPECT_EQ(traced.commands, plain.commands);
  EXPECT_EQ(traced.device_peak_bytes, plain.device_peak_bytes);
  EXPECT_EQ(traced.device_resident_bytes, plain.device_resident_bytes);
  EXPECT_EQ(traced.host_peak_bytes, plain.host_peak_bytes);
  EXPECT_EQ(traced.cache_use->allocated_peak_bytes, plain.cache_use->allocated_peak_bytes);
  EXPECT_EQ(traced.cache_use->reserved_peak_bytes, plain.cache_use->reserved_peak_bytes);
  EXPECT_EQ(traced.step_time_ns, plain.step_time_ns);
  EXPECT_EQ(traced.exposed_ns, plain.exposed_ns);
}

TEST_P(TracedStep, TimesOfItsEventsMatchItsFigures) {
  const StepResult traced = step(&*tracing_);
  const auto figures = gpu_figures_of(traced);
  ASSERT_TRUE(figures);
  EXPECT_EQ(figures->compute_ns + figures->exposed_ns + figures->idle_ns, traced.step_time_ns);
  EXPECT_EQ(figures->d2h.bytes, traced.d2h_bytes);
  EXPECT_EQ(figures->h2d.bytes, traced.h2d_bytes);
  EXPECT_LE(figures->d2h.busy_ns, traced.d2h_busy_ns)
      << "events also count the time that a copy waits for the link";
  EXPECT_LE(figures->h2d.busy_ns, traced.h2d_busy_ns);
  ASSERT_TRUE(tracing_->summary());
  EXPECT_FALSE(tracing_->summary()->lost_records());
  EXPECT_EQ(tracing_->summary()->tool, "CUPTI");
  EXPECT_FALSE(gpu_figures_of(step(nullptr)));
}

TEST_P(TracedStep, TracingCostsNoVirtualTime) {
  device_->release_cache();
  Policy policy = preset_policy(GetParam());
  RunSettings settings;
  settings.optimizer = "sgd";
  Trainer trainer(*model_, *device_, settings, &*tracing_);
  for (int i = 0; i < 2; ++i) trainer.step(policy, {}, Recording::kNone);
  const TracingCost cost = measure_tracing_cost(
      {[&] { return trainer.step(policy, {}, Recording::kNone).step_time_ns; },
       [&] { return trainer.run({.policy = policy, .traced = TraceDetail::kStreams}).step_time_ns; },
       [&] { return trainer.run({.policy = policy, .traced = TraceDetail::kAll}).step_time_ns; },
       [&] { return trainer.run({.policy = policy, .recording = Recording::kTimeline}).step_time_ns; },
       [&] { return trainer.step(policy, {}, Recording::kTimeline).step_time_ns; }});
  EXPECT_EQ(cost.streams, cost.untraced);
  EXPECT_EQ(cost.tracer, cost.untraced);
  EXPECT_EQ(cost.recorder, cost.untraced);
  EXPECT_EQ(cost.everything, cost.untraced);
  EXPECT_EQ(cost.untraced.low_ns, cost.untraced.high_ns);
}

TEST_P(TracedStep, HasACopyForEachCommandThatCopies) {
  const StepResult traced = step(&*tracing_);
  const WorkCauses causes(traced.gpu);
  std::map<std::size_t, Bytes> copied;  // by command
  for (const StreamWork& work : traced.gpu.work) {
    const auto command = causes.command_of(work.correlation);
    const bool crosses = work.from == GpuMemoryKind::kPinned || work.to == GpuMemoryKind::kPinned;
    if (command && work.kind == StreamWorkKind::kCopy && crosses) copied[*command] += work.bytes;
  }
  std::size_t asked = 0;
  for (std::size_t i = 0; i < traced.recording.commands.size(); ++i) {
    const Command& command = traced.recording.commands[i].command;
    if (!std::holds_alternative<CopyOut>(command) && !std::holds_alternative<CopyIn>(command)) continue;
    ++asked;
    EXPECT_EQ(copied[i], copy_fields(command)->bytes) << "command " << i;
  }
  EXPECT_EQ(copied.size(), asked);
}

TEST_P(TracedStep, HasAKernelForEachLaunchThatTheGpuCounts) {
  step(&*tracing_);
  const std::int64_t before = offprof_virtual_gpu()->launches();
  device_->release_cache();
  const StepResult traced = step(&*tracing_);
  const std::int64_t launches = (offprof_virtual_gpu()->launches() - before) / 3;
  const auto is_kernel = [](const StreamWork& work) { return work.kind == StreamWorkKind::kKernel; };
  EXPECT_EQ(std::ranges::count_if(traced.gpu.work, is_kernel), launches);
}

TEST_P(TracedStep, RunsUntracedAndReportsItIfAnotherProfilerTraces) {
  tracing_.emplace();  // CUPTI is free
  CUpti_SubscriberParams params{};
  params.structSize = CUpti_SubscriberParams_STRUCT_SIZE;
  params.subscriberName = "another profiler";
  CUpti_SubscriberHandle subscriber = nullptr;
  ASSERT_EQ(cuptiSubscribe_v2(&subscriber, nullptr, nullptr, &params), CUPTI_SUCCESS);
  StepTracing refused = StepTracing::of_device("virtual:h200");
  cuptiUnsubscribe(subscriber);
  const StepResult untraced = step(&refused);
  EXPECT_THAT(untraced.gpu.work, IsEmpty());
  EXPECT_GT(untraced.step_time_ns, 0);
  EXPECT_THAT(refused.take_notes(),
              ElementsAre(AllOf(HasSubstr("the timeline has no kernels"), HasSubstr("another profiler"))));
}

INSTANTIATE_TEST_SUITE_P(Policies, TracedStep, testing::Values("keep", "offload", "trl"),
                         [](const auto& policy) { return policy.param; });

}  // namespace
}  // namespace offprof
