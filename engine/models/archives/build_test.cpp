#include "engine/models/archives/build.h"

#include <ATen/Parallel.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <torch/csrc/jit/python/update_graph_executor_opt.h>
#include <torch/csrc/jit/runtime/graph_executor.h>
#include <torch/script.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <sstream>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using Sizes = std::map<std::string, std::int64_t>;

struct TestModel {
  std::string name;
  Sizes sizes;
  std::string spec;
  double learning_rate;
};

std::ostream& operator<<(std::ostream& out, const TestModel& model) {
  return out << model.name;
}

const std::vector<TestModel> kModels{
    {"transformer",
     {{"batch", 2}, {"seq", 12}, {"layers", 2}, {"width", 16}, {"heads", 2}, {"vocab", 20}},
     "int64[2,12]<20\n",
     0.1},
    {"llama",
     {{"batch", 2},
      {"seq", 12},
      {"layers", 2},
      {"width", 16},
      {"heads", 4},
      {"kv-heads", 2},
      {"ffn", 24},
      {"vocab", 20}},
     "int64[2,12]<20\n",
     0.1},
    {"moe",
     {{"batch", 2}, {"seq", 12}, {"layers", 2}, {"width", 16}, {"heads", 2}, {"vocab", 20}, {"experts", 4}},
     "int64[2,12]<20\n",
     0.1},
    {"lstm", {{"batch", 2}, {"seq", 12}, {"width", 16}, {"vocab", 20}}, "int64[2,12]<20\n", 0.5},
    {"mlp", {{"batch", 8}, {"inputs", 12}, {"layers", 2}, {"width", 16}}, "float32[8,12]\n", 0.1},
    {"resnet", {{"batch", 2}, {"image", 16}, {"layers", 1}, {"width", 4}}, "float32[2,3,16,16]\n", 0.01},
    {"unet", {{"batch", 2}, {"image", 16}, {"levels", 2}, {"width", 4}}, "float32[2,3,16,16]\n", 0.01},
};

std::string bytes_of(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  std::ostringstream bytes;
  bytes << in.rdbuf();
  return bytes.str();
}

struct Loaded {
  torch::jit::Module module;
  std::string specs;
};

Loaded load(const std::string& name, const Sizes& sizes) {
  const TestFolder folder;
  save_zoo_model(name, sizes, 0, folder / "model.pt");
  torch::jit::ExtraFilesMap extra{{kInputsExtraFile, ""}};
  torch::jit::Module module = torch::jit::load(folder / "model.pt", std::nullopt, extra);
  return {std::move(module), extra.at(kInputsExtraFile)};
}

at::Tensor integers(const std::vector<std::int64_t>& shape, std::int64_t end) {
  return torch::randint(end, shape);
}

at::Tensor input_of(const TestModel& model) {
  if (model.spec.starts_with("int64")) return integers({2, 12}, 20);
  return model.name == "mlp" ? torch::randn({8, 12}) : torch::randn({2, 3, 16, 16});
}

// A scalar output is the loss; the loss of another output is the mean of its squares.
at::Tensor loss_of(torch::jit::Module& module, const at::Tensor& input) {
  const at::Tensor output = module.forward({input}).toTensor();
  return output.dim() == 0 ? output : output.square().mean();
}

void step(torch::jit::Module& module, double learning_rate) {
  const at::NoGradGuard no_grad;
  for (at::Tensor parameter : module.parameters()) {
    parameter.sub_(parameter.grad(), learning_rate);
    parameter.mutable_grad() = at::Tensor();
  }
}

// Records the size of every allocation in its scope.
class AllocationSizes : public c10::MemoryReportingInfoBase {
 public:
  void reportMemoryUsage(void*, std::int64_t size, std::size_t, std::size_t, c10::Device) override {
    sizes.push_back(size);
  }
  bool memoryProfilingEnabled() const override { return true; }

  std::vector<std::int64_t> sizes;
};

std::vector<std::int64_t> allocations_of_a_step(torch::jit::Module& module, const at::Tensor& input) {
  const auto recorded = std::make_shared<AllocationSizes>();
  const c10::DebugInfoGuard guard(c10::DebugInfoKind::PROFILER_STATE, recorded);
  loss_of(module, input).backward();
  step(module, 0.01);
  return recorded->sizes;
}

// Runs models like the engine: every operator separately, nothing fused.
class ZooTest : public ::testing::Test {
 protected:
  void SetUp() override {
    torch::jit::setGraphExecutorOptimize(false);
    torch::jit::getProfilingMode() = false;
    at::set_num_threads(1);
    torch::manual_seed(7);
  }
};

class ZooModelTest : public ZooTest, public ::testing::WithParamInterface<TestModel> {
 protected:
  static Loaded load_model() { return load(GetParam().name, GetParam().sizes); }
};

TEST_P(ZooModelTest, CarriesItsInputSpecs) {
  EXPECT_EQ(load_model().specs, GetParam().spec);
}

TEST_P(ZooModelTest, LoadsInTrainMode) {
  EXPECT_TRUE(load_model().module.is_training());
}

TEST_P(ZooModelTest, GivesEveryParameterAFiniteGradient) {
  Loaded model = load_model();
  loss_of(model.module, input_of(GetParam())).backward();
  for (const auto& parameter : model.module.named_parameters()) {
    ASSERT_TRUE(parameter.value.requires_grad()) << parameter.name;
    ASSERT_TRUE(parameter.value.grad().defined()) << parameter.name;
    EXPECT_TRUE(parameter.value.grad().isfinite().all().item<bool>()) << parameter.name;
    EXPECT_GT(parameter.value.grad().abs().sum().item<double>(), 0) << parameter.name;
  }
}

TEST_P(ZooModelTest, OverfitsASingleBatch) {
  Loaded model = load_model();
  const at::Tensor input = input_of(GetParam());
  const double first = loss_of(model.module, input).item<double>();
  for (int i = 0; i < 20; ++i) {
    loss_of(model.module, input).backward();
    step(model.module, GetParam().learning_rate);
  }
  EXPECT_LT(loss_of(model.module, input).item<double>(), 0.95 * first);
}

TEST_P(ZooModelTest, GivesTheSameOutputForTheSameSeeds) {
  const at::Tensor input = input_of(GetParam());
  Loaded one = load_model();
  Loaded other = load_model();
  torch::manual_seed(3);
  const at::Tensor output = one.module.forward({input}).toTensor();
  torch::manual_seed(3);
  EXPECT_TRUE(output.equal(other.module.forward({input}).toTensor()));
}

TEST_P(ZooModelTest, AllocatesTheSameInEveryStepWhateverTheData) {
  Loaded model = load_model();
  allocations_of_a_step(model.module, input_of(GetParam()));
  const auto second = allocations_of_a_step(model.module, input_of(GetParam()));
  EXPECT_FALSE(second.empty());
  EXPECT_EQ(second, allocations_of_a_step(model.module, input_of(GetParam())));
}

TEST_P(ZooModelTest, SavesTheSameBytesForTheSameSeed) {
  const TestFolder folder;
  save_zoo_model(GetParam().name, GetParam().sizes, 5, folder / "one.pt");
  save_zoo_model(GetParam().name, GetParam().sizes, 5, folder / "other.pt");
  save_zoo_model(GetParam().name, GetParam().sizes, 6, folder / "different.pt");
  EXPECT_EQ(bytes_of(folder / "one.pt"), bytes_of(folder / "other.pt"));
  EXPECT_NE(bytes_of(folder / "one.pt"), bytes_of(folder / "different.pt"));
}

INSTANTIATE_TEST_SUITE_P(Zoo, ZooModelTest, ::testing::ValuesIn(kModels),
                         [](const auto& instance) { return instance.param.name; });

using ZooTransformer = ZooTest;
using ZooMoe = ZooTest;
using ZooResnet = ZooTest;
using ZooUnet = ZooTest;

const Sizes kTinyDecoder{{"batch", 2}, {"seq", 6},   {"layers", 1}, {"width", 8},
                         {"heads", 2}, {"vocab", 9}, {"dropout", 0}};

const Sizes kTinyLlama{{"batch", 2}, {"seq", 6},      {"layers", 1}, {"width", 8},
                       {"heads", 2}, {"kv-heads", 1}, {"ffn", 12},   {"vocab", 9}};

Sizes tiny_decoder_with(const std::string& name, std::int64_t value) {
  Sizes sizes = kTinyDecoder;
  sizes[name] = value;
  return sizes;
}

TEST_F(ZooTransformer, FusedAttentionComputesTheSame) {
  const at::Tensor ids = integers({2, 6}, 9);
  Loaded plain = load("transformer", kTinyDecoder);
  Loaded fused = load("transformer", tiny_decoder_with("fused", 1));
  EXPECT_NEAR(loss_of(plain.module, ids).item<double>(), loss_of(fused.module, ids).item<double>(), 1e-5);
}

TEST_F(ZooTransformer, AnUntiedHeadHasItsOwnParameters) {
  EXPECT_FALSE(load("transformer", kTinyDecoder).module.hasattr("head_weight"));
  Loaded untied = load("transformer", tiny_decoder_with("tied", 0));
  loss_of(untied.module, integers({2, 6}, 9)).backward();
  EXPECT_TRUE(untied.module.attr("head_weight").toTensor().grad().defined());
}

TEST_F(ZooTransformer, NoTokenSeesLaterTokens) {
  const Loaded model = load("transformer", kTinyDecoder);
  torch::jit::Module blocks = model.module.attr("blocks").toModule();
  const at::Tensor places = torch::arange(6);
  const at::Tensor mask = places.unsqueeze(0).gt(places.unsqueeze(1));
  const at::Tensor x = torch::randn({1, 6, 8});
  at::Tensor changed = x.clone();
  changed[0][5].neg_();
  const at::Tensor output = blocks.forward({x, mask}).toTensor();
  const at::Tensor output_of_changed = blocks.forward({changed, mask}).toTensor();
  EXPECT_TRUE(output.narrow(1, 0, 5).equal(output_of_changed.narrow(1, 0, 5)));
  EXPECT_FALSE(output.equal(output_of_changed));
}

// Runs one expert after another: each processes its best tokens, and adds the results at their positions.
at::Tensor experts_one_by_one(const torch::jit::Module& experts, const at::Tensor& tokens,
                              std::int64_t capacity) {
  at::Tensor joined = torch::zeros_like(tokens);
  const at::Tensor scores = torch::softmax(tokens.matmul(experts.attr("router").toTensor().t()), -1);
  for (std::int64_t e = 0; e < scores.size(1); ++e) {
    const auto [gates, chosen] = scores.select(1, e).topk(capacity);
    const at::Tensor inside =
        torch::gelu(tokens.index_select(0, chosen).matmul(experts.attr("up").toTensor()[e]));
    const at::Tensor mixed = inside.matmul(experts.attr("down").toTensor()[e]) * gates.unsqueeze(1);
    joined = joined.index_add(0, chosen, mixed);
  }
  return joined;
}

TEST_F(ZooMoe, EachExpertAddsItsBestTokens) {
  Sizes sizes = tiny_decoder_with("experts", 4);
  sizes["choices"] = 2;
  const Loaded model = load("moe", sizes);
  torch::jit::Module experts =
      model.module.attr("blocks").toModule().attr("layer0").toModule().attr("feed_forward").toModule();
  const at::Tensor x = torch::randn({3, 4, 8});
  const at::Tensor expected = experts_one_by_one(experts, x.view({12, 8}), 12 * 2 / 4).view_as(x);
  EXPECT_TRUE(expected.allclose(experts.forward({x}).toTensor(), 1e-4, 1e-5));
}

TEST_F(ZooResnet, UpdatesItsRunningStatisticsInTrainMode) {
  Loaded model = load("resnet", {{"batch", 2}, {"image", 8}, {"layers", 1}, {"width", 4}});
  const auto statistics =
      model.module.attr("stem").toModule().attr("norm").toModule().attr("running_mean").toTensor();
  model.module.forward({torch::randn({2, 3, 8, 8})});
  EXPECT_GT(statistics.abs().sum().item<double>(), 0);
}

TEST_F(ZooUnet, ReturnsLogitsForEveryPixel) {
  Loaded model = load("unet", {{"batch", 2}, {"image", 16}, {"levels", 3}, {"width", 4}, {"classes", 5}});
  EXPECT_EQ(model.module.forward({torch::randn({2, 3, 16, 16})}).toTensor().sizes(),
            (at::IntArrayRef{2, 5, 16, 16}));
}

TEST_P(ZooModelTest, MetaParametersKeepTheirSizes) {
  const TestFolder folder;
  const std::string with = folder / "with.pt", without = folder / "without.pt";
  save_zoo_model(GetParam().name, GetParam().sizes, 0, with);
  save_zoo_model(GetParam().name, GetParam().sizes, 0, without, {.meta = true});
  const torch::jit::Module expected = torch::jit::load(with), module = torch::jit::load(without);
  const auto parameters = module.named_parameters();
  auto parameter = parameters.begin();
  for (const auto& twin : expected.named_parameters()) {
    const at::Tensor value = (*parameter).value;
    EXPECT_EQ((*parameter).name, twin.name);
    EXPECT_EQ(value.sizes(), twin.value.sizes());
    EXPECT_TRUE(value.requires_grad());
    EXPECT_EQ(value.storage().nbytes(), value.element_size()) << twin.name;
    ++parameter;
  }
}

TEST_P(ZooModelTest, TrainsAStepInBfloat16) {
  const TestFolder folder;
  save_zoo_model(GetParam().name, GetParam().sizes, 0, folder / "model.pt", {.dtype = "bfloat16"});
  torch::jit::Module module = torch::jit::load(folder / "model.pt");
  at::Tensor input = input_of(GetParam());
  if (input.is_floating_point()) input = input.to(at::kBFloat16);
  loss_of(module, input).backward();
  for (const auto& parameter : module.named_parameters()) {
    EXPECT_EQ(parameter.value.scalar_type(), at::kBFloat16) << parameter.name;
    EXPECT_TRUE(parameter.value.grad().isfinite().all().item<bool>()) << parameter.name;
  }
}

using ZooLlama = ZooTest;

TEST_F(ZooLlama, NoTokenSeesLaterTokens) {
  const Loaded model = load("llama", kTinyLlama);
  torch::jit::Module attention =
      model.module.attr("blocks").toModule().attr("layer0").toModule().attr("attention").toModule();
  const at::Tensor angles = torch::rand({6, 2});
  const at::Tensor x = torch::randn({1, 6, 8});
  at::Tensor changed = x.clone();
  changed[0][5].neg_();
  const at::Tensor output = attention.forward({x, angles.cos(), angles.sin()}).toTensor();
  const at::Tensor output_of_changed = attention.forward({changed, angles.cos(), angles.sin()}).toTensor();
  EXPECT_TRUE(output.narrow(1, 0, 5).equal(output_of_changed.narrow(1, 0, 5)));
  EXPECT_FALSE(output.equal(output_of_changed));
}

TEST_F(ZooLlama, RotatesHalvesOfAHeadAsComplexNumbers) {
  const Loaded model = load("llama", kTinyLlama);
  torch::jit::Module attention =
      model.module.attr("blocks").toModule().attr("layer0").toModule().attr("attention").toModule();
  const at::Tensor x = torch::randn({1, 2, 6, 4}), angles = torch::rand({6, 2});
  const at::Tensor turned = attention.get_method("turned")({x, angles.cos(), angles.sin()}).toTensor();
  const at::Tensor expected =
      torch::complex(x.narrow(-1, 0, 2), x.narrow(-1, 2, 2)) * torch::polar(torch::ones({6, 2}), angles);
  EXPECT_TRUE(turned.narrow(-1, 0, 2).allclose(torch::real(expected), 1e-5, 1e-6));
  EXPECT_TRUE(turned.narrow(-1, 2, 2).allclose(torch::imag(expected), 1e-5, 1e-6));
}

TEST(SaveZooModel, FloatInputsHaveTheDtypeOfTheParameters) {
  const TestFolder folder;
  save_zoo_model("mlp", {{"batch", 1}, {"inputs", 1}, {"width", 1}}, 0, folder / "m.pt",
                 {.dtype = "bfloat16"});
  torch::jit::ExtraFilesMap extra{{kInputsExtraFile, ""}};
  torch::jit::load(folder / "m.pt", std::nullopt, extra);
  EXPECT_EQ(extra.at(kInputsExtraFile), "bfloat16[1,1]\n");
}

// 68,976,648,192 parameters, 128 GiB in bfloat16.
TEST(SaveZooModel, A70BModelWithMetaParametersIsASmallFile) {
  constexpr std::uintmax_t kMost = 2 << 20;
  const TestFolder folder;
  save_zoo_model("llama", zoo_preset_sizes(find_zoo_model("llama"), "70b"), 0, folder / "model.pt",
                 {.dtype = "bfloat16", .meta = true});
  EXPECT_LT(std::filesystem::file_size(folder / "model.pt"), kMost);
}

TEST(SaveZooModel, RejectsAnUnknownDtype) {
  const TestFolder folder;
  EXPECT_THROW(save_zoo_model("mlp", {}, 0, folder / "model.pt", {.dtype = "int8"}), Error);
}

TEST(SaveZooModel, ReplacesAnOlderFileAndLeavesNothingElse) {
  const TestFolder folder;
  std::ofstream(folder / "model.pt") << "old";
  save_zoo_model("mlp", {{"batch", 1}, {"inputs", 1}, {"width", 1}}, 0, folder / "model.pt");
  EXPECT_NO_THROW(torch::jit::load(folder / "model.pt"));
  EXPECT_EQ(folder.files().size(), 1);
}

TEST(SaveZooModel, NamesAPathThatCannotBeWritten) {
  const TestFolder folder;
  try {
    save_zoo_model("mlp", {}, 0, folder / "no such folder/model.pt");
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("no such folder"));
  }
}

TEST(SaveZooModel, RejectsAGzipName) {
  const TestFolder folder;
  EXPECT_THROW(save_zoo_model("mlp", {}, 0, folder / "model.pt.gz"), Error);
}

TEST(SaveZooModel, RejectsParametersBeyondTheMachinesMemory) {
  const TestFolder folder;
  try {
    save_zoo_model("transformer", {{"width", 1 << 16}, {"layers", 1024}}, 0, folder / "model.pt");
    FAIL() << "no Error was thrown";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), ::testing::HasSubstr("of parameters, but this machine has"));
  }
}

}  // namespace
}  // namespace offprof
