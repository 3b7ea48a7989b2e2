// Values from a checkpoint (`run --load`) and the list of a file's tensors (`inspect`), tested with command
// lines. Python writes the checkpoints, as the specification of safetensors describes them.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

/// Checks that the parameter has the values 41, 42, ..., 56.
constexpr const char* kModel =
    "def forward(self, x):\n"
    "    for i in range(16):\n"
    "        assert float(self.w[i]) == 41.0 + i, 'another value'\n"
    "    return (self.w * self.w * x).sum()\n";

/// The same without the check: a virtual GPU has no values.
constexpr const char* kModelWithoutCheck = "def forward(self, x):\n    return (self.w * self.w * x).sum()\n";

/// Writes a safetensors file with one tensor. Arguments: path, name, dtype, shape, struct's format.
constexpr const char* kPython = R"(
import json, struct, sys
path, name, dtype, shape, form = sys.argv[1:]
shape = json.loads(shape)
count = 1
for size in shape:
    count *= size
data = struct.pack('<%d%s' % (count, form), *range(41, 41 + count))
header = json.dumps({name: {'dtype': dtype, 'shape': shape, 'data_offsets': [0, len(data)]}}).encode()
with open(path, 'wb') as file:
    file.write(struct.pack('<Q', len(header)) + header + data)
)";

class Load : public testing::Test {
 protected:
  std::string checkpoint(const std::string& name = "w", const std::string& dtype = "F32",
                         const std::string& shape = "[16]", const std::string& form = "f") const {
    std::ofstream(inputs_ / "write.py") << kPython;
    const std::string path = inputs_ / "values.safetensors";
    const std::string line = "python3 " + in_quotes(inputs_ / "write.py") + " " + in_quotes(path) + " " +
                             name + " " + dtype + " " + in_quotes(shape) + " " + form;
    EXPECT_EQ(std::system(line.c_str()), 0);
    return path;
  }
  std::vector<std::string> run_of(const char* model, const std::vector<std::string>& more) const {
    return joined({"run", write_model(model, inputs_ / "model.pt"), "--input", "float32[16]", "--optimizer",
                   "none", "--steps", "1"},
                  more);
  }
  /// Expects exit status 2, an error that contains `what`, and no file in the output folder.
  void expect_refusal(const std::string& what, const std::string& file) const {
    const Ended ended =
        run_program(run_of(kModelWithoutCheck, {"--load", file, "-o", folder_ / "trace.json"}));
    EXPECT_EQ(ended.status, 2) << ended.err;
    EXPECT_THAT(unwrapped(ended.err), HasSubstr(what));
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_THAT(folder_.files(), IsEmpty());
  }

  TestFolder folder_, inputs_;
};

TEST_F(Load, TrainsWithTheValuesOfASafetensorsFile) {
  const json report = report_of(run_of(kModel, {"--load", checkpoint()}));
  EXPECT_EQ(report["gradients"], "bitwise");
  EXPECT_EQ(report["inexact"], json::array());
}

TEST_F(Load, FailsWithTheValuesOfTheModel) {
  EXPECT_EQ(run_program(run_of(kModel, {})).status, 2);
}

TEST_F(Load, IsExactOnAVirtualGpu) {
  const json report =
      report_of(run_of(kModelWithoutCheck, {"--load", checkpoint(), "--device", "virtual:h200"}));
  EXPECT_EQ(report["inexact"], json::array());
}

TEST_F(Load, KeepsTheFileOfTheValuesInTheTrace) {
  const std::string file = checkpoint();
  report_of(run_of(kModel, {"--load", file, "-o", folder_ / "trace.json"}));
  EXPECT_EQ(json::parse(std::ifstream(folder_ / "trace.json"))["settings"]["loaded_from"], file);
}

/// Parameters are read from the checkpoint, so there is nothing to write.
TEST_F(Load, TrainsParametersThatStayInTheCheckpoint) {
  const std::string transformer =
      zoo_model("transformer", {"--batch", "2", "--layers", "2", "--seq", "16", "--width", "64"});
  const Ended inspected = run_program({"inspect", transformer, "--format", "json"});
  ASSERT_EQ(inspected.status, 0) << inspected.err;
  const json tensors = json::parse(inspected.out)["tensors"];
  json header;
  std::int64_t end = 0;
  for (const json& tensor : tensors) {
    const std::int64_t begin = std::exchange(end, end + tensor["bytes"].get<std::int64_t>());
    ASSERT_EQ(tensor["dtype"], "float32") << tensor;
    header[tensor["name"].get<std::string>()] = {
        {"dtype", "F32"}, {"shape", tensor["shape"]}, {"data_offsets", {begin, end}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  const std::string file = inputs_ / "values.safetensors";
  std::ofstream(file, std::ios::binary)
      .write(reinterpret_cast<const char*>(&length), sizeof length)
      .write(text.data(), static_cast<std::streamsize>(text.size()))
      .write(std::string(static_cast<std::size_t>(end), '\x3c').data(), end);
  for (const char* optimizer : {"none", "sgd"}) {
    const json report = report_of({"run", transformer, "--steps", "2", "--optimizer", optimizer, "--load",
                                   file, "--offload-params", "disk", "--offload-params-dir", folder_.path()});
    EXPECT_EQ(report["gradients"], "bitwise") << optimizer;
    EXPECT_EQ(report["inexact"], json::array()) << optimizer;
  }
  EXPECT_THAT(folder_.files(), IsEmpty());
}

TEST_F(Load, RejectsACheckpointOfAnotherModel) {
  expect_refusal("of the model's tensors are not in the checkpoint ('w')", checkpoint("v"));
  expect_refusal("of the checkpoint's tensors are not in the model ('v')", checkpoint("v"));
}

TEST_F(Load, RejectsAnotherShapeOrType) {
  expect_refusal("'w' is float32[4, 4], the model's is float32[16]", checkpoint("w", "F32", "[4,4]"));
  expect_refusal("'w' is float64[16], the model's is float32[16]", checkpoint("w", "F64", "[16]", "d"));
}

TEST_F(Load, RejectsFilesThatAreNoCheckpoints) {
  expect_refusal("No such file", inputs_ / "nothing.safetensors");
  expect_refusal("is a TorchScript module", model_path("qwen2.pt"));
}

TEST_F(Load, TheNamesOfAModelAreThoseOfInspect) {
  const Ended ended = run_program({"inspect", write_model(kModel, inputs_ / "model.pt")});
  EXPECT_EQ(ended.status, 0) << ended.err;
  EXPECT_THAT(ended.out, AllOf(HasSubstr("TorchScript model, 1 tensor, 64 B"), HasSubstr("w  ")));
}

}  // namespace
}  // namespace offprof
