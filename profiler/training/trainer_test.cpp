#include "profiler/training/trainer.h"

#include <gmock/gmock.h>
#include <torch/csrc/jit/frontend/resolver.h>
#include <torch/csrc/jit/frontend/sugared_value.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/profiling_graph_executor_impl.h>

#include <algorithm>
#include <map>

#include "engine/models/archives/build.h"
#include "profiler/calibration/cost_calibration.h"
#include "profiler/session/run_job.h"
#include "profiler/stages/gradient_check.h"
#include "tests/conformance/device_wrapper.h"
#include "tests/support/test_folder.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Policy kKeep = preset_policy("keep");
const Policy kOffload = preset_policy("offload");

std::vector<Policy> policies() {
  return {kKeep, kOffload, test_policy("offload", 300, 2, 1 << 12), preset_policy("trl"),
          test_policy("trl", 0, 0)};
}

const Progress kQuietly = [](const std::string&) {};

/// Defines `fork`, as Python's front end does.
struct ForkResolver final : torch::jit::NativeResolver {
  std::shared_ptr<torch::jit::SugaredValue> resolveValue(const std::string& name,
                                                         torch::jit::GraphFunction& function,
                                                         const torch::jit::SourceRange& place) override {
    if (name == "fork") return torch::jit::SpecialFormValue::create(torch::jit::prim::fork);
    return NativeResolver::resolveValue(name, function, place);
  }
};

class TrainerTest : public TorchTest {
 protected:
  TrainerTest() {
    torch::jit::setGraphExecutorOptimize(false);  // as run_job does
    torch::jit::getProfilingMode() = false;
  }

  std::string path() const { return folder_ / "model.pt"; }

  /// Writes a small model of the zoo, with its input specs in the file.
  std::string zoo_model(const std::string& name) const {
    static const std::map<std::string, std::map<std::string, std::int64_t>> kSizes = {
        {"transformer",
         {{"batch", 2}, {"seq", 12}, {"layers", 2}, {"width", 16}, {"heads", 2}, {"vocab", 20}}},
        {"moe",
         {{"batch", 2},
          {"seq", 12},
          {"layers", 2},
          {"width", 16},
          {"heads", 2},
          {"vocab", 20},
          {"experts", 4}}},
        {"lstm", {{"batch", 2}, {"seq", 12}, {"width", 16}, {"vocab", 20}}},
        {"mlp", {{"batch", 8}, {"inputs", 12}, {"layers", 2}, {"width", 16}}},
        {"resnet", {{"batch", 2}, {"image", 16}, {"layers", 1}, {"width", 4}}},
        {"unet", {{"batch", 2}, {"image", 16}, {"levels", 2}, {"width", 4}}}};
    save_zoo_model(name, kSizes.at(name), kSeed, path());
    return path();
  }

  Model load_zoo_model(const std::string& name) const {
    Model model = load_model(zoo_model(name));
    at::manual_seed(kSeed);
    make_inputs(model, input_specs_in_archive(path()));
    return model;
  }

  /// Writes a module with that code as its forward and a parameter `weight` [8,6].
  std::string module_of(const std::string& code, const std::string& inputs) const {
    torch::jit::Module module("M");
    module.register_parameter("weight", at::randn({8, 6}).set_requires_grad(true), /*is_buffer=*/false);
    module.register_buffer("count", at::zeros({1}));
    module.define("def forward(self, x):\n" + code, std::make_shared<ForkResolver>());
    module.save(path(), {{kInputsExtraFile, inputs}});
    return path();
  }

  static RunSettings settings_of(const std::string& optimizer) {
    RunSettings settings;
    settings.optimizer = optimizer;
    settings.steps = 2;
    return settings;
  }
  static RunRequest request_for(const std::string& model, const Policy& policy) {
    RunRequest request;
    request.model_path = model;
    request.settings = settings_of("adamw");
    request.policy = policy;
    return request;
  }

  TestFolder folder_;
};

// --- Steps ---

TEST_F(TrainerTest, TrainsUnderEveryPolicyLikePlainAutograd) {
  Model plain = load_zoo_model("transformer");
  Trainer plain_trainer(plain, device_, settings_of("adamw"));
  for (int i = 0; i < 3; ++i) plain_trainer.plain_step();
  for (const Policy& policy : policies()) {
    Model model = load_zoo_model("transformer");
    Trainer trainer(model, device_, settings_of("adamw"));
    for (int i = 0; i < 3; ++i) trainer.step(policy, {}, Recording::kNone);
    EXPECT_EQ(compare_gradients(model.parameter_names, plain.parameters, model.parameters), "bitwise")
        << describe(policy);
  }
}

TEST_F(TrainerTest, EveryStepBeginsWithTheSameBytesAndReachesTheSamePeak) {
  for (const Policy& policy : policies()) {
    Model model = load_zoo_model("resnet");
    Trainer trainer(model, device_, settings_of("adamw"));
    trainer.plain_step();
    const StepResult first = trainer.step(policy, {}, Recording::kNone);
    const StepResult recorded = trainer.step(policy, {}, Recording::kProgram);
    const StepResult last = trainer.step(policy, {}, Recording::kNone);
    for (const StepResult& other : {recorded, last}) {
      EXPECT_EQ(other.device_resident_bytes, first.device_resident_bytes) << describe(policy);
      EXPECT_EQ(other.device_peak_bytes, first.device_peak_bytes) << describe(policy);
      EXPECT_EQ(other.commands, first.commands) << describe(policy);
    }
  }
}

TEST_F(TrainerTest, OffloadingLowersThePeakAndCopiesBothWays) {
  Model model = load_zoo_model("resnet");
  Trainer trainer(model, device_, settings_of("none"));
  const StepResult keep = trainer.step(kKeep, {}, Recording::kNone);
  const StepResult offload = trainer.step(kOffload, {}, Recording::kNone);
  EXPECT_LT(offload.device_peak_bytes, keep.device_peak_bytes);
  EXPECT_EQ(keep.d2h_bytes, 0);
  EXPECT_GT(offload.d2h_bytes, 0);
  EXPECT_EQ(offload.h2d_bytes, offload.d2h_bytes);
  EXPECT_EQ(offload.host_peak_bytes, offload.d2h_bytes);
}

TEST_F(TrainerTest, OptimizerStateIsResident) {
  const auto resident = [&](const std::string& optimizer) {
    Model model = load_zoo_model("mlp");
    Trainer trainer(model, device_, settings_of(optimizer));
    trainer.plain_step();
    return trainer.step(kKeep, {}, Recording::kNone).device_resident_bytes - model.info.parameter_bytes;
  };
  EXPECT_EQ(resident("sgd"), resident("none"));
  EXPECT_GE(resident("adamw") - resident("none"), 2 * load_zoo_model("mlp").info.parameter_bytes);
}

TEST_F(TrainerTest, RejectsAnUnknownOptimizer) {
  Model model = load_zoo_model("mlp");
  EXPECT_THAT(message_of<Error>([&] { Trainer(model, device_, settings_of("lion")); }),
              HasSubstr("unknown optimizer 'lion'"));
}

TEST_F(TrainerTest, RecordsNothingUnlessRequested) {
  Model model = load_zoo_model("mlp");
  Trainer trainer(model, device_, settings_of("none"));
  EXPECT_TRUE(trainer.step(kOffload, {}, Recording::kNone).recording.events.empty());
  EXPECT_FALSE(trainer.step(kOffload, {}, Recording::kTimeline).recording.events.empty());
}

TEST_F(TrainerTest, AGraphThatOutlivesItsStepDoesNotReportToTheNextOne) {
  module_of("    self.count = x.mm(self.weight).exp().sum().reshape([1])\n    return x.mm(self.weight)\n",
            "float32[4,8]");
  Model model = load_model(path());
  make_inputs(model, input_specs_in_archive(path()));
  Trainer trainer(model, device_, settings_of("none"));
  trainer.step(kOffload, {}, Recording::kTimeline);
  const RecordedPass next = trainer.step(kOffload, {}, Recording::kTimeline).recording;
  const auto releases = std::ranges::count(next.events, RawKind::kRelease, &RawEvent::kind);
  EXPECT_GT(releases, 0);
  EXPECT_LT(releases,
            static_cast<std::ptrdiff_t>(next.saved.size()));  // the rest belongs to the remaining graph
}

Bytes mean_bytes(const std::vector<CopyRecord>& copies) {
  Bytes bytes = 0;
  for (const CopyRecord& copy : copies) bytes += copy.bytes;
  return bytes / static_cast<Bytes>(copies.size());
}

TEST_F(TrainerTest, CalibratesWithinTheCapOfTheLink) {
  constexpr double kCap = 2e9;
  HostDevice device(torch_allocator(), {{kCap, 0, 0}, {kCap, 0, 0}});
  Model model = load_zoo_model("mlp");
  Trainer trainer(model, device, settings_of("none"));
  trainer.plain_step();
  const StepResult step = trainer.step(kOffload, {}, Recording::kProgram);
  const StepCalibration measured =
      carry_out(calibrate(device, calibrate_copies(device), 2 * step.recording.saved.size(), {}),
                [&](const StepOrder& order) { return trainer.run(order); });
  const Calibration& calibration = measured.costs;
  EXPECT_GE(measured.offloaded_extra_ns.size(), 5U);
  // An overestimated latency makes the bandwidth too high. For a copy of the step's mean size, both together
  // must not be faster than the cap.
  const Link link = link_of(calibration);
  const Bytes bytes = mean_bytes(step.copies);
  const auto least = static_cast<Nanoseconds>(1e9 * static_cast<double>(bytes) / kCap * 0.999);
  EXPECT_GE(link.d2h.duration(bytes), least);
  EXPECT_GE(link.h2d.duration(bytes), least);
  EXPECT_GT(calibration.step.low_ns, 0);
  EXPECT_GT(calibration.hook.median_ns, 0);
  EXPECT_EQ(calibration.standstills.size(), 2U);
  EXPECT_EQ(device.host_used_bytes(), 0);
}

// --- Gradients ---

class ZooGradientTest : public TrainerTest, public testing::WithParamInterface<const char*> {};

TEST_P(ZooGradientTest, AreBitwiseEqualToPlainAutograd) {
  Model model = load_zoo_model(GetParam());
  Trainer trainer(model, device_, settings_of("none"));
  const std::vector<Tensor> expected = trainer.gradients(std::nullopt, {});
  for (const Policy& policy : policies())
    EXPECT_EQ(compare_gradients(model.parameter_names, expected, trainer.gradients(policy, {})), "bitwise")
        << describe(policy);
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooGradientTest,
                         testing::Values("transformer", "moe", "lstm", "mlp", "resnet", "unet"),
                         [](const auto& name) { return std::string(name.param); });

TEST_F(TrainerTest, GradientsAreReproducibleAndDoNotChangeTheModel) {
  Model model = load_zoo_model("resnet");
  Trainer trainer(model, device_, settings_of("none"));
  std::vector<Tensor> buffers;
  for (const Tensor& buffer : model.module.buffers()) buffers.push_back(buffer.clone());
  const std::vector<Tensor> once = trainer.gradients(kOffload, {}), again = trainer.gradients(kOffload, {});
  EXPECT_EQ(compare_gradients(model.parameter_names, once, again), "bitwise");
  std::size_t i = 0;
  for (const Tensor& buffer : model.module.buffers()) EXPECT_TRUE(bitwise_equal(buffer, buffers[i++]));
  for (const Tensor& parameter : model.parameters) EXPECT_FALSE(parameter.grad().defined());
}

TEST_F(TrainerTest, ComparisonReportsTheFirstDifferentGradient) {
  const Tensor one = at::ones({3}), other = at::tensor({1.0F, 1.0F, 1.25F});
  EXPECT_EQ(compare_gradients({"a", "b"}, {one, one}, {one, one}), "bitwise");
  EXPECT_EQ(compare_gradients({"a", "b"}, {one, one}, {one, other}),
            "1 of 2 parameters differ; b differs by up to 0.25");
  EXPECT_THAT(compare_gradients({"a"}, {one}, {Tensor()}), HasSubstr("one of the two steps has none"));
}

TEST_F(TrainerTest, AMarkedStepHasAMarkAtEachPhasePackAndUnpack) {
  Model model = load_zoo_model("transformer");
  Trainer trainer(model, device_, settings_of("adamw"));
  const RecordedPass recorded = trainer.step(kKeep, {}, Recording::kProgram).recording;
  const StepMarks marks = trainer.step(preset_policy("keep"), {}, Recording::kMarks).marks;
  std::size_t next = 0;
  for (const RawEvent& event : recorded.events) {
    if (event.kind != RawKind::kPhase && event.kind != RawKind::kPack && event.kind != RawKind::kUnpack)
      continue;
    ASSERT_LT(next, marks.size());
    EXPECT_EQ(marks[next].kind == EventKind::kPhase, event.kind == RawKind::kPhase);
    if (event.kind != RawKind::kPhase) {
      EXPECT_EQ(marks[next].tensor, event.id);
    }
    if (next > 0) {
      EXPECT_GE(marks[next].stream_ns, marks[next - 1].stream_ns);
    }
    ++next;
  }
  EXPECT_EQ(next, marks.size());
}

TEST_F(TrainerTest, PhasesAddUpToTheStep) {
  Model model = load_zoo_model("transformer");
  Trainer trainer(model, device_, settings_of("adamw"));
  const StepResult step = trainer.step(kKeep, {}, Recording::kNone);
  ASSERT_EQ(step.phases.size(), 3u);
  Nanoseconds sum = 0;
  for (const auto& [name, duration] : step.phases) sum += duration;
  EXPECT_EQ(step.phases[1].first, "backward");
  EXPECT_GT(sum, 0);
  EXPECT_LE(sum, step.step_time_ns);
}

// --- The whole run ---

TEST_F(TrainerTest, RunRecordsChecksAndMeasures) {
  const Bytes before = live_bytes();
  {
    const RunResult result = run_job(request_for(zoo_model("transformer"), kOffload), device_, kQuietly);
    EXPECT_EQ(result.trace.gradients, "bitwise");
    EXPECT_FALSE(result.trace.program.events.empty());
    EXPECT_GT(result.trace.metrics.device_peak_bytes, result.trace.metrics.device_resident_bytes);
    EXPECT_FALSE(result.commands.empty());
    EXPECT_FALSE(result.trace.timeline.spans.empty());
  }
  EXPECT_EQ(live_bytes(), before);
  EXPECT_EQ(device_.host_used_bytes(), 0);
}

/// A model whose gates are pieces of one storage, each activated in place.
const char* const kLstmCells =
    "    h = torch.zeros([4, 2])\n    c = torch.zeros([4, 2])\n    for i in range(3):\n"
    "        h, c = torch.lstm_cell(x[:, :6], [h, c], self.weight, self.weight[:, :2])\n    return h * c\n";

TEST_F(TrainerTest, RunOfLstmCellsHasTheGradientsOfPlainAutograd) {
  for (const Policy& policy : policies()) {
    const RunRequest request = request_for(module_of(kLstmCells, "float32[4,8]"), policy);
    EXPECT_EQ(run_job(request, device_, kQuietly).trace.gradients, "bitwise") << describe(policy);
  }
}

TEST_F(TrainerTest, RunBeyondTheDeviceMemoryReportsTheRequestAndTheCapacity) {
  RunRequest request = request_for(zoo_model("transformer"), kKeep);
  request.settings.device_memory_bytes =
      run_job(request, device_, kQuietly).trace.metrics.device_peak_bytes.value() - 1;
  const Bytes before = live_bytes();
  {
    const RunResult result = run_job(request, device_, kQuietly);
    ASSERT_TRUE(result.refusal.has_value());
    EXPECT_GT(result.refusal->asked_bytes, 0);
    EXPECT_GT(result.refusal->asked_bytes + result.refusal->live_bytes, result.refusal->capacity_bytes);
    EXPECT_EQ(result.refusal->capacity_bytes, request.settings.device_memory_bytes);
    EXPECT_FALSE(result.trace.program.events.empty());
  }
  EXPECT_EQ(live_bytes(), before);
  request.settings.device_memory_bytes.reset();
  EXPECT_EQ(run_job(request, device_, kQuietly).trace.gradients, "bitwise");
}

TEST_F(TrainerTest, ComparisonContinuesIfOnePolicyRunsOutOfMemory) {
  RunRequest request = request_for(zoo_model("transformer"), kKeep);
  const Bytes most = *run_job(request, device_, kQuietly).trace.metrics.device_peak_bytes;
  request.settings.device_memory_bytes = most - 1;
  Comparison comparison;
  comparison.policies = {{kOffload}, {kKeep}, {kOffload}};
  comparison.rounds = 2;
  const Bytes before = live_bytes();
  const ComparisonResult result = comparison_job(request, comparison, device_, kQuietly);
  EXPECT_THAT(result.runs.at(1).out_of_memory, HasSubstr("out of device memory"));
  for (const std::size_t i : {0, 2}) {
    EXPECT_EQ(result.runs.at(i).out_of_memory, "");
    EXPECT_EQ(result.runs.at(i).step_times_ns.size(), 2u);
    EXPECT_EQ(result.runs.at(i).gradients, "bitwise");
    EXPECT_LT(*result.runs.at(i).measured.device_peak_bytes, most);
  }
  EXPECT_EQ(result.runs.at(0).measured.device_peak_bytes, result.runs.at(2).measured.device_peak_bytes);
  EXPECT_EQ(live_bytes(), before);
}

TEST_F(TrainerTest, RunDelaysReloadsWithoutDeviceMemoryAndReportsIt) {
  RunRequest request = request_for(zoo_model("transformer"), kOffload);
  const Bytes least = *run_job(request, device_, kQuietly).trace.metrics.device_peak_bytes;
  request.policy = test_policy("offload", 0, std::nullopt, kGiB);
  const RunResult unlimited = run_job(request, device_, kQuietly);
  EXPECT_THAT(unlimited.trace.notes, Not(Contains(HasSubstr("ran out of device memory"))));
  ASSERT_GT(unlimited.trace.metrics.device_peak_bytes, least);
  request.settings.device_memory_bytes = least + (*unlimited.trace.metrics.device_peak_bytes - least) / 2;
  const RunResult limited = run_job(request, device_, kQuietly);
  EXPECT_FALSE(limited.refusal.has_value());
  EXPECT_EQ(limited.trace.gradients, "bitwise");
  EXPECT_LE(limited.trace.metrics.device_peak_bytes, request.settings.device_memory_bytes);
  EXPECT_THAT(limited.trace.notes, Contains(HasSubstr("reloads ran out of device memory 2 times")));
}

TEST_F(TrainerTest, RunKeepsTensorsOnTheDeviceIfTheHostIsFull) {
  RunRequest request = request_for(zoo_model("transformer"), kOffload);
  request.policy.host_memory_bytes = 10 * kKiB;
  const RunResult result = run_job(request, device_, kQuietly);
  EXPECT_EQ(result.trace.gradients, "bitwise");
  EXPECT_LE(result.trace.metrics.host_peak_bytes, 10 * kKiB);
  EXPECT_TRUE(result.trace.ledger.contains({Place::kDevice, PlacementReason::kHostFull}));
}

TEST_F(TrainerTest, RunUnderTrlReportsFullHostMemory) {
  RunRequest request = request_for(zoo_model("transformer"), test_policy("trl", 0, 0));
  request.policy.host_memory_bytes = 10 * kKiB;
  try {
    run_job(request, device_, kQuietly);
    FAIL() << "it fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("host memory"));
  }
}

TEST_F(TrainerTest, RunWithWrongInputShapesIsAnInputError) {
  RunRequest request = request_for(module_of("    return x.mm(self.weight)\n", "float32[4,7]"), kKeep);
  try {
    run_job(request, device_, kQuietly);
    FAIL() << "it fitted";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), AllOf(HasSubstr("(4x7 and 8x6)"), Not(HasSubstr("frame #"))));
  }
}

TEST_F(TrainerTest, RunWithoutInputSpecsAsksForThem) {
  RunRequest request = request_for(module_of("    return x.mm(self.weight)\n", ""), kKeep);
  EXPECT_THAT(message_of<Error>([&] { run_job(request, device_, kQuietly); }),
              HasSubstr("the archive does not describe the model's inputs"));
}

const char* const kForks =
    "    later = fork(self.branch, x)\n    return x.mm(self.weight).sin() + torch.wait(later)\n"
    "def branch(self, x):\n    return x.mm(self.weight).exp().tanh()\n";

TEST_F(TrainerTest, RunRejectsAModelThatForks) {
  const RunRequest request = request_for(module_of(kForks, "float32[4,8]"), kOffload);
  EXPECT_THAT(message_of<Error>([&] { run_job(request, device_, kQuietly); }),
              HasSubstr("the model runs operators on several threads at once"));
}

TEST_F(TrainerTest, StepsOfAModelThatForksHaveTheGradientsOfPlainAutograd) {
  Model model = load_model(module_of(kForks, "float32[4,8]"));
  make_inputs(model, input_specs_in_archive(path()));
  Trainer trainer(model, device_, settings_of("none"));
  const std::vector<Tensor> expected = trainer.gradients(std::nullopt, {});
  for (int i = 0; i < 20; ++i)
    for (const Policy& policy : policies()) {
      EXPECT_EQ(compare_gradients(model.parameter_names, expected, trainer.gradients(policy, {})), "bitwise")
          << describe(policy);
      EXPECT_THROW(trainer.step(policy, {}, Recording::kProgram), Error);
    }
}

/// Refuses every model after its first step.
class RefusingDevice final : public DeviceWrapper {
 public:
  using DeviceWrapper::DeviceWrapper;
  std::optional<Error> take_model_refusal() override { return input_error("unpredictable"); }
};

TEST_F(TrainerTest, TheFirstStepOfAModelThatTheDeviceCannotPredictIsAnError) {
  RefusingDevice device(device_);
  Model model = load_zoo_model("mlp");
  Trainer trainer(model, device, settings_of("none"));
  EXPECT_EQ(message_of<Error>([&] { trainer.plain_step(); }), "unpredictable");
  EXPECT_EQ(message_of<Error>([&] { trainer.step(kKeep, {}, Recording::kNone); }), "unpredictable");
}

TEST_F(TrainerTest, RunRejectsAModelThatChangesFromStepToStep) {
  RunRequest request = request_for(
      module_of("    self.count += 1\n    for i in range(int(self.count)):\n        x = x.exp().cos()\n"
                "    return x.mm(self.weight)\n",
                "float32[4,8]"),
      kKeep);
  EXPECT_THAT(message_of<Error>([&] { run_job(request, device_, kQuietly); }),
              HasSubstr("the model's step differs from pass to pass"));
}

}  // namespace
}  // namespace offprof
