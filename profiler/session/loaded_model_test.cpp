#include "profiler/session/loaded_model.h"

#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <torch/csrc/jit/api/module.h>

#include <functional>
#include <map>

#include "engine/models/archives/build.h"
#include "profiler/training/trainer.h"
#include "tests/support/safetensors_file.h"
#include "tests/support/test_folder.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

const Progress kQuietly = [](const std::string&) {};

using Values = std::map<std::string, at::Tensor>;

class LoadedModelTest : public TorchTest {
 protected:
  std::string zoo(std::uint64_t seed, const ZooWeights& weights = {}) const {
    const std::string path = folder_ / ("model" + std::to_string(seed) + ".pt");
    save_zoo_model("transformer",
                   {{"batch", 2}, {"seq", 12}, {"layers", 2}, {"width", 64}, {"heads", 2}, {"vocab", 40}},
                   seed, path, weights);
    return path;
  }
  /// Writes a module whose parameters `a` and `b` share their memory.
  std::string tied(int seed) const {
    const std::string path = folder_ / ("tied" + std::to_string(seed) + ".pt");
    at::manual_seed(static_cast<std::uint64_t>(seed));
    const at::Tensor shared = at::randn({64, 64}).set_requires_grad(true);
    torch::jit::Module module("Tied");
    module.register_parameter("a", shared, false);
    module.register_parameter("b", shared, false);
    module.define("def forward(self, x):\n    return torch.matmul(torch.matmul(x, self.a), self.b)\n");
    module.save(path, {{kInputsExtraFile, "float32[5,64]"}});
    return path;
  }
  /// Returns copies of the values in an archive, without any code that is under test.
  static Values values_in(const std::string& model) {
    const torch::jit::Module module = torch::jit::load(model);
    Values values;
    for (const auto& parameter : module.named_parameters()) values[parameter.name] = parameter.value.clone();
    for (const auto& buffer : module.named_buffers()) values[buffer.name] = buffer.value.clone();
    return values;
  }
  RunRequest request(const std::string& model, const std::string& checkpoint, const std::string& place = {}) {
    RunRequest request;
    request.model_path = model;
    request.settings.loaded_from = checkpoint;
    if (!place.empty()) request.settings.parameters = ParameterSettings{place, 0};
    request.parameters_folder = folder_.path();
    return request;
  }
  std::vector<at::Tensor> gradients(const RunRequest& request) {
    const auto loaded = load_for(request, device_, kQuietly);
    ParameterOffloader* const offloader = loaded->offloader ? &*loaded->offloader : nullptr;
    Trainer trainer(loaded->model, device_, request.settings, nullptr, offloader);
    std::vector<at::Tensor> gradients = trainer.gradients(std::nullopt, {});
    for (at::Tensor& gradient : gradients) gradient = gradient.clone();
    return gradients;
  }
  void expect_gradients_of_archive(const std::string& archive, const RunRequest& request) {
    const auto expected = gradients(this->request(archive, ""));
    const auto loaded = gradients(request);
    ASSERT_EQ(expected.size(), loaded.size());
    for (std::size_t i = 0; i < expected.size(); ++i)
      EXPECT_TRUE(bitwise_equal(expected[i], loaded[i])) << "gradient " << i;
  }
  /// Writes the values of the archive, changed by `change`, and returns the error of loading them.
  std::pair<std::string, std::string> refusal(const std::function<void(Values&)>& change) {
    const std::string model = zoo(1);
    Values values = values_in(model);
    change(values);
    write_safetensors(folder_ / "changed.safetensors", values);
    try {
      load_for(request(model, folder_ / "changed.safetensors"), device_, kQuietly);
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
      return {error.what(), error.hint()};
    }
    return {"no error", ""};
  }

  TestFolder folder_;
};

TEST_F(LoadedModelTest, HasTheGradientsOfAnArchiveWithTheValuesOfItsCheckpoint) {
  const std::string model = zoo(1), other = zoo(2), checkpoint = folder_ / "other.safetensors";
  write_safetensors(checkpoint, values_in(other));
  for (const std::string place : {"", "host", "disk"}) {
    SCOPED_TRACE(place);
    expect_gradients_of_archive(other, request(model, checkpoint, place));
  }
}

TEST_F(LoadedModelTest, GivesMetaParametersTheValuesOfTheCheckpoint) {
  const std::string other = zoo(2), checkpoint = folder_ / "other.safetensors";
  write_safetensors(checkpoint, values_in(other));
  const std::string model = zoo(3, {.meta = true});
  for (const std::string place : {"", "disk"}) {
    SCOPED_TRACE(place);
    expect_gradients_of_archive(other, request(model, checkpoint, place));
  }
}

TEST_F(LoadedModelTest, LeavesOffloadedParametersInTheCheckpoint) {
  const std::string model = zoo(1), checkpoint = folder_ / "same.safetensors";
  write_safetensors(checkpoint, values_in(model));
  const auto loaded = load_for(request(model, checkpoint, "disk"), device_, kQuietly);
  Bytes resident = 0;
  for (const at::Tensor& parameter : loaded->model.module.parameters())
    if (parameter.storage().data() != nullptr) resident += static_cast<Bytes>(parameter.nbytes());
  EXPECT_LT(resident, loaded->model.info.parameter_bytes / 4);
}

TEST_F(LoadedModelTest, LoadsParametersThatShareMemoryByOneNameOrBoth) {
  const std::string model = tied(1), other = tied(2), checkpoint = folder_ / "tied.safetensors";
  const Values values = values_in(other);
  for (const Values& written : {values, Values{{"a", values.at("a")}}, Values{{"b", values.at("b")}}}) {
    write_safetensors(checkpoint, written);
    for (const std::string place : {"", "host", "disk"}) {
      SCOPED_TRACE(std::to_string(written.size()) + " " + place);
      expect_gradients_of_archive(other, request(model, checkpoint, place));
    }
  }
}

TEST_F(LoadedModelTest, RejectsTwoValuesOfParametersThatShareMemory) {
  const std::string model = tied(1);
  Values values = values_in(model);
  values["b"] = values["b"] + 1;
  write_safetensors(folder_ / "tied.safetensors", values);
  try {
    load_for(request(model, folder_ / "tied.safetensors"), device_, kQuietly);
    FAIL() << "two values";
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("'a' and 'b' have different values, but they share memory"));
  }
}

TEST_F(LoadedModelTest, LoadsAStateDictOfPyTorch) {
  torch::jit::Module linear("Linear"), norm("Norm"), net("Net");
  linear.register_parameter("weight", at::zeros({4, 3}).set_requires_grad(true), false);
  linear.register_parameter("bias", at::zeros({4}).set_requires_grad(true), false);
  for (const char* name : {"weight", "bias"})
    norm.register_parameter(name, at::zeros({4}).set_requires_grad(true), false);
  for (const char* name : {"running_mean", "running_var"}) norm.register_buffer(name, at::zeros({4}));
  norm.register_buffer("num_batches_tracked", at::scalar_tensor(0, at::kLong));
  net.register_module("0", linear);
  net.register_module("1", norm);
  net.define("def forward(self, x):\n    return x\n");
  net.save(folder_ / "net.pt", {{kInputsExtraFile, "float32[5,3]"}});
  const auto loaded =
      load_for(request(folder_ / "net.pt", OFFPROF_TEST_CHECKPOINTS "/state_dict.pt"), device_, kQuietly);
  const torch::jit::Module& module = loaded->model.module;
  EXPECT_TRUE(
      module.attr("0").toModule().attr("weight").toTensor().equal(at::arange(12, at::kFloat).view({4, 3})));
  EXPECT_EQ(module.attr("1").toModule().attr("num_batches_tracked").toTensor().item<std::int64_t>(), 1);
}

TEST_F(LoadedModelTest, ABufferThatTheCheckpointLacksKeepsItsValue) {
  torch::jit::Module net("Net");
  net.register_parameter("w", at::zeros({3}).set_requires_grad(true), false);
  net.register_buffer("positions", at::arange(3, at::kFloat));
  net.define("def forward(self, x):\n    return x * self.w + self.positions\n");
  net.save(folder_ / "net.pt", {{kInputsExtraFile, "float32[3]"}});
  write_safetensors(folder_ / "w.safetensors", Values{{"w", at::ones({3})}});
  const auto loaded = load_for(request(folder_ / "net.pt", folder_ / "w.safetensors"), device_, kQuietly);
  EXPECT_TRUE(loaded->model.module.attr("w").toTensor().equal(at::ones({3})));
  EXPECT_TRUE(loaded->model.module.attr("positions").toTensor().equal(at::arange(3, at::kFloat)));
  EXPECT_THAT(loaded->trace.notes,
              ElementsAre(AllOf(HasSubstr("1 of the model's buffers"), HasSubstr("('positions')"))));
}

TEST_F(LoadedModelTest, ReportsMissingAndUnknownNames) {
  const auto [what, hint] = refusal([](Values& values) {
    values["other"] = values.begin()->second;
    values.erase(values.begin());
  });
  EXPECT_THAT(what, AllOf(HasSubstr("changed.safetensors: does not match the parameters and buffers of"),
                          HasSubstr("1 of the model's tensors are not in the checkpoint ('"),
                          HasSubstr("1 of the checkpoint's tensors are not in the model ('other')"),
                          Not(HasSubstr("another shape"))));
  EXPECT_THAT(hint, HasSubstr("state_dict()"));
}

TEST_F(LoadedModelTest, ReportsOtherShapesAndTypes) {
  EXPECT_THAT(
      refusal([](Values& values) {
        auto& [name, value] = *values.begin();
        value = value.to(at::kHalf);
      }).first,
      AllOf(HasSubstr("1 have another shape or dtype"), HasSubstr("is float16["), HasSubstr("float32[")));
  EXPECT_THAT(refusal([](Values& values) {
                auto& [name, value] = *values.begin();
                value = value.unsqueeze(0);
              }).first,
              HasSubstr("1 have another shape or dtype"));
}

TEST_F(LoadedModelTest, ListsOnlyTheFirstFewNames) {
  EXPECT_THAT(refusal([](Values& values) { values = {{"a", at::zeros({1})}}; }).first, HasSubstr(", ...)"));
}

}  // namespace
}  // namespace offprof
