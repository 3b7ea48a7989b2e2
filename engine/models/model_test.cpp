#include "engine/models/model.h"

#include <gmock/gmock.h>
#include <torch/csrc/jit/api/module.h>

#include <fstream>
#include <sstream>

#include "tests/support/test_folder.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using at::Tensor;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class ModelTest : public TorchTest {
 protected:
  std::string path(const std::string& name) const { return folder_ / name; }

  std::string write(const std::string& name, const std::string& bytes) const {
    std::ofstream(path(name), std::ios::binary) << bytes;
    return path(name);
  }
  std::string read(const std::string& file) const {
    std::ostringstream bytes;
    bytes << std::ifstream(file, std::ios::binary).rdbuf();
    return bytes.str();
  }

  /// Writes a zip as PyTorch does, with the given records.
  std::string write_archive(const std::string& name, const std::vector<std::string>& records) const {
    caffe2::serialize::PyTorchStreamWriter writer(path(name));
    for (const std::string& record : records) writer.writeRecord(record, "x", 1);
    writer.writeEndOfFile();
    return path(name);
  }

  /// Returns a module with one parameter `weight` [8,6] and a buffer. `code` is its forward.
  static torch::jit::Module module_of(const std::string& code) {
    torch::jit::Module module("M");
    module.register_attribute("training", c10::BoolType::get(), true);
    module.register_parameter("weight", at::randn({8, 6}), /*is_buffer=*/false);
    module.register_buffer("mask", at::ones({6}));
    module.define(code);
    return module;
  }
  std::string save(const torch::jit::Module& module, const torch::jit::ExtraFilesMap& extra = {}) const {
    module.save(path("model.pt"), extra);
    return path("model.pt");
  }
  Model load(const std::string& code, const std::vector<std::string>& specs = {}) const {
    Model model = load_model(save(module_of(code)));
    make_inputs(model, specs);
    return model;
  }

  std::string refusal(const std::string& file) const {
    const std::string message = message_of<Error>([&] { load_model(file); });
    EXPECT_THAT(message,
                AllOf(HasSubstr(file), Not(HasSubstr("Exception raised")), Not(HasSubstr("frame #"))));
    EXPECT_EQ(std::count(message.begin(), message.end(), '\n'), 0) << message;
    return message;
  }

  TestFolder folder_;
};

const std::string kProduct = "def forward(self, x):\n    return x.mm(self.weight) * self.mask\n";

// --- Inputs that a spec cannot describe ---

TEST_F(ModelTest, RejectsInputsThatAreNotTensorsAndNamesTheirType) {
  const std::string body = "\n    return self.weight.sum()\n";
  for (const std::string type : {"Dict[str, Tensor]", "Tuple[Tensor, Tensor]", "List[Tensor]", "int"}) {
    const std::string file = save(module_of("def forward(self, batch: " + type + "):" + body));
    EXPECT_THAT(message_of<Error>([&] { load_model(file); }),
                AllOf(HasSubstr("'batch' of type " + type), HasSubstr("only be tensors")));
  }
}

TEST_F(ModelTest, AcceptsOptionalTensorsAndSkipsDefaults) {
  const std::string code =
      "def forward(self, x, y: Optional[Tensor] = None, scale: float = 1.0):\n"
      "    return x.mm(self.weight) * scale\n";
  EXPECT_EQ(load(code, {"float32[4,8]", "float32[4]"}).inputs.size(), 2U);
  EXPECT_THAT(message_of<Error>([&] {
                load(code, {"float32[4,8]", "float32[4]", "float32[1]"});
              }),
              HasSubstr("'scale' of type float"));
}

// --- Files ---

TEST_F(ModelTest, LoadsParametersNamesAndFingerprint) {
  const Model model = load_model(save(module_of(kProduct)));
  EXPECT_EQ(model.info.name, "model.pt");
  EXPECT_EQ(model.info.parameters, 48);
  EXPECT_EQ(model.info.parameter_bytes, 192);
  EXPECT_FALSE(model.info.fingerprint.empty());
  EXPECT_THAT(model.parameter_names, ElementsAre("weight"));
  EXPECT_TRUE(model.module.is_training());
}

TEST_F(ModelTest, TrainsEveryFloatParameterOfAnArchiveThatTrainsNone) {
  torch::jit::Module module = module_of(kProduct);
  module.attr("weight").toTensor().set_requires_grad(false);
  const Model model = load_model(save(module));
  ASSERT_EQ(model.parameters.size(), 1U);
  EXPECT_TRUE(model.parameters[0].requires_grad());
}

TEST_F(ModelTest, LeavesFrozenParametersOfAnArchiveThatTrainsOthers) {
  torch::jit::Module module = module_of(kProduct);
  module.register_parameter("frozen", at::randn({2}).set_requires_grad(false), false);
  module.attr("weight").toTensor().set_requires_grad(true);
  const Model model = load_model(save(module));
  EXPECT_THAT(model.parameter_names, ElementsAre("weight"));
  EXPECT_EQ(model.info.parameters, 50);
}

TEST_F(ModelTest, RejectsAMissingFile) {
  EXPECT_THAT(refusal(path("none.pt")), HasSubstr("no such file"));
}

TEST_F(ModelTest, RejectsAFolder) {
  EXPECT_THAT(refusal(folder_.path()), HasSubstr("is a folder"));
}

TEST_F(ModelTest, RejectsAnEmptyFile) {
  EXPECT_THAT(refusal(write("a.pt", "")), HasSubstr("not a TorchScript archive"));
}

TEST_F(ModelTest, RejectsAFileThatIsNotAZip) {
  EXPECT_THAT(refusal(write("a.pt", "import torch\n")), HasSubstr("not a TorchScript archive"));
}

TEST_F(ModelTest, RejectsAnOldTorchSavePickle) {
  EXPECT_THAT(refusal(write("a.pt", "\x80\x02}q\x01.")),
              HasSubstr("it has the parameters, but no code to run"));
}

TEST_F(ModelTest, RejectsAZipOfTorchSave) {
  EXPECT_THAT(refusal(write_archive("a.pt", {"data.pkl", "data/0"})),
              HasSubstr("an eager checkpoint or state dict"));
}

TEST_F(ModelTest, RejectsAPt2ArchiveOfTorchExport) {
  EXPECT_THAT(refusal(write_archive("a.pt2", {"archive_format", "models/model.json"})),
              HasSubstr(".pt2 archive"));
}

TEST_F(ModelTest, RejectsAZipThatPyTorchDidNotWrite) {
  // The smallest zip: an end of central directory without entries.
  std::string zip("PK\x05\x06", 4);
  zip.resize(22, '\0');
  EXPECT_THAT(refusal(write("a.zip", zip)), HasSubstr("a zip that PyTorch did not write"));
}

TEST_F(ModelTest, RejectsATruncatedArchive) {
  const std::string whole = read(save(module_of(kProduct)));
  for (const double part : {0.1, 0.5, 0.95})
    EXPECT_THAT(
        refusal(write("a.pt",
                      whole.substr(0, static_cast<std::size_t>(part * static_cast<double>(whole.size()))))),
        HasSubstr("damaged or truncated"));
}

TEST_F(ModelTest, NeverCrashesOnAnArchiveWithDamagedBytes) {
  const std::string whole = read(save(module_of(kProduct)));
  for (std::size_t at = 0; at < whole.size(); at += 17) {
    std::string damaged = whole;
    damaged[at] = static_cast<char>(damaged[at] ^ 0x55);
    try {
      load_model(write("a.pt", damaged));
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kInput);
    }
  }
}

TEST_F(ModelTest, RejectsAModuleWithoutParameters) {
  torch::jit::Module module("M");
  module.define("def forward(self, x):\n    return x.exp()\n");
  EXPECT_THAT(refusal(save(module)), HasSubstr("no parameters to train"));
}

TEST_F(ModelTest, RejectsAModuleWithoutForward) {
  EXPECT_THAT(refusal(save(module_of("def other(self, x):\n    return x\n"))),
              HasSubstr("no forward method"));
}

TEST_F(ModelTest, ReadsInputSpecsFromTheArchive) {
  const std::string file = save(module_of(kProduct), {{"offprof.inputs", "# of the model\nfloat32[4,8]\n"}});
  EXPECT_THAT(input_specs_in_archive(file), ElementsAre("float32[4,8]"));
  EXPECT_TRUE(input_specs_in_archive(save(module_of(kProduct))).empty());
}

// --- Inputs ---

TEST_F(ModelTest, MakesInputsByTheirSpecs) {
  const Model model = load("def forward(self, x, i, b):\n    return self.weight\n",
                           {"bfloat16[4,8]", "int64[100]<3", "bool[2]"});
  EXPECT_EQ(model.inputs[0].toTensor().scalar_type(), at::kBFloat16);
  EXPECT_EQ(model.inputs[0].toTensor().sizes(), at::IntArrayRef({4, 8}));
  EXPECT_EQ(model.inputs[1].toTensor().max().item<std::int64_t>(), 2);
  EXPECT_EQ(model.inputs[2].toTensor().scalar_type(), at::kBool);
}

TEST_F(ModelTest, RejectsAWrongNumberOfInputs) {
  EXPECT_THAT(message_of<Error>([&] {
                load(kProduct, {"float32[4,8]", "float32[4,8]"});
              }),
              HasSubstr("forward takes 1 inputs (x), but 2 were given"));
  EXPECT_THAT(message_of<Error>(
                  [&] { load("def forward(self, x, y, z: int = 1):\n    return x\n", {"float32[1]"}); }),
              HasSubstr("forward takes 2 to 3 inputs (x, y, z), but 1 were given"));
}

TEST_F(ModelTest, ReportsAWrongShapeInLibTorchsWordsWithoutABacktrace) {
  Model model = load(kProduct, {"float32[4,7]"});
  const std::string message = message_of<Error>([&] { run_forward(model, model.inputs); });
  EXPECT_THAT(message, AllOf(HasSubstr("model.pt: forward does not accept these inputs (Float[4, 7])"),
                             HasSubstr("mat1 and mat2 shapes cannot be multiplied (4x7 and 8x6)"),
                             Not(HasSubstr("TorchScript interpreter")), Not(HasSubstr("frame #"))));
}

TEST_F(ModelTest, ParametersBuffersAndInputsAreResidents) {
  const Model model = load(kProduct, {"float32[4,8]"});
  const Residents residents = residents_of(model, device_);
  const auto role = [&](const Tensor& tensor) {
    return residents.roles.at(*device_.allocation_of(tensor.storage()));
  };
  EXPECT_EQ(role(model.parameters[0].t()), StorageRole::kParameter);
  EXPECT_EQ(role(model.module.attr("mask").toTensor()), StorageRole::kBuffer);
  EXPECT_EQ(role(model.inputs[0].toTensor()), StorageRole::kInput);
  EXPECT_TRUE(residents.parameters.contains(model.parameters[0].unsafeGetTensorImpl()));
  EXPECT_FALSE(residents.parameters.contains(model.parameters[0].t().unsafeGetTensorImpl()));
}

// --- Loss ---

TEST_F(ModelTest, AScalarOutputIsTheLoss) {
  Model model = load("def forward(self):\n    return self.weight.sum()\n");
  EXPECT_EQ(loss_of(run_forward(model, model.inputs), "auto").item<float>(),
            model.parameters[0].sum().item<float>());
}

TEST_F(ModelTest, MeanAndSumAreOfSquares) {
  Model model = load("def forward(self):\n    return self.weight\n");
  const c10::IValue output = run_forward(model, model.inputs);
  const Tensor squares = model.parameters[0].pow(2);
  EXPECT_TRUE(bitwise_equal(loss_of(output, "auto"), squares.mean()));
  EXPECT_TRUE(bitwise_equal(loss_of(output, "mean"), squares.mean()));
  EXPECT_TRUE(bitwise_equal(loss_of(output, "sum"), squares.sum()));
}

TEST_F(ModelTest, UsesTheFirstDifferentiableTensorOfAnOutput) {
  for (const char* output :
       {"(self.mask, self.weight)", "[self.mask, self.weight]", "{'a': self.mask, 'b': self.weight}",
        "(self.mask, [(1, self.weight)])", "(self.weight.argmax(), self.weight)"}) {
    Model model = load(std::string("def forward(self):\n    return ") + output + "\n");
    EXPECT_TRUE(
        bitwise_equal(loss_of(run_forward(model, model.inputs), "mean"), model.parameters[0].pow(2).mean()))
        << output;
  }
}

TEST_F(ModelTest, RejectsAnOutputWithoutADifferentiableTensor) {
  for (const char* output : {"self.mask", "self.weight.argmax()", "self.weight.detach()", "(1, 'a')"}) {
    Model model = load(std::string("def forward(self):\n    return ") + output + "\n");
    EXPECT_THAT(message_of<Error>([&] { loss_of(run_forward(model, model.inputs), "auto"); }),
                HasSubstr("no floating-point tensor that depends on a trained parameter"))
        << output;
  }
}

}  // namespace
}  // namespace offprof
