// Mistakes of users: each gives its exit status and one clear message with the next step, and writes nothing.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <csignal>
#include <fstream>
#include <iterator>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

constexpr const char* kQwenInput = "int64[4,96]<512";

class BadInput : public testing::Test {
 protected:
  /// Expects that the program ends with `status`, that its error contains `what`, and that it leaves no file.
  void expect(int status, const std::string& what, const std::vector<std::string>& arguments) {
    const Ended ended = run_program(arguments);
    EXPECT_EQ(ended.status, status) << ended.err;
    EXPECT_THAT(ended.err, HasSubstr("error: "));
    EXPECT_THAT(unwrapped(ended.err), HasSubstr(what));
    EXPECT_THAT(ended.err, Not(HasSubstr("Exception raised from"))) << "a C++ backtrace";
    EXPECT_THAT(ended.err, Not(HasSubstr("internal error")));
    EXPECT_THAT(ended.out, IsEmpty());
    EXPECT_THAT(folder_.files(), IsEmpty());
  }
  void expect_of_run(int status, const std::string& what, std::vector<std::string> more) {
    std::vector<std::string> arguments = {"run", model_path("qwen2.pt"), "-o", folder_ / "trace.json"};
    arguments.insert(arguments.end(), more.begin(), more.end());
    expect(status, what, arguments);
  }

  TestFolder folder_;
};

/// An input file in a folder of its own, so that the test's folder stays empty.
class InputFile {
 public:
  InputFile(const std::string& name, const std::string& content) : path_(folder_ / name) {
    std::ofstream(path_, std::ios::binary) << content;
  }
  const std::string& path() const { return path_; }

 private:
  TestFolder folder_;
  std::string path_;
};

std::string content(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

TEST_F(BadInput, NoSuchModel) {
  expect(2, "no such file", {"run", folder_ / "nothing.pt"});
}

TEST_F(BadInput, AModelThatIsNoZip) {
  const InputFile file("model.pt", "hello");
  expect(2, "not a TorchScript archive", {"run", file.path()});
}

TEST_F(BadInput, ATruncatedModel) {
  const std::string whole = content(model_path("qwen2.pt"));
  const InputFile file("model.pt", whole.substr(0, whole.size() / 2));
  expect(2, "damaged or truncated", {"run", file.path()});
}

TEST_F(BadInput, APickleInTheOldFormat) {
  const InputFile file("model.pt", "\x80\x02}q");
  expect(2, "torch.jit.trace", {"run", file.path()});
}

TEST_F(BadInput, NoInputs) {
  expect_of_run(2, "the archive does not describe the model's inputs", {});
}

TEST_F(BadInput, AModelWithInputsThatAreNoTensors) {
  const TestFolder models;
  for (const std::string type : {"Dict[str, Tensor]", "Tuple[Tensor, Tensor]", "int"}) {
    const std::string model = write_model(
        "def forward(self, batch: " + type + "):\n    return (self.w * 2).sum()\n", models / "model.pt");
    const std::string what = "forward takes 'batch' of type " + type + ", but inputs can only be tensors";
    expect(2, what, {"run", model});
    expect(2, what, {"run", model, "--input", "float32[4,8]"});
  }
}

TEST_F(BadInput, TooManyInputs) {
  expect_of_run(2, "forward takes 1 input", {"--input", kQwenInput, "--input", "bool[1]"});
}

TEST_F(BadInput, AnInputOfAnotherDtype) {
  expect_of_run(2, "forward does not accept these inputs", {"--input", "float32[4,96]"});
}

TEST_F(BadInput, AnInputOfAnotherShape) {
  expect(2, "to have 3 channels, but got 4 channels",
         {"run", model_path("shufflenet.pt"), "--input", "float32[8,4,64,64]"});
}

TEST_F(BadInput, AnInputOutOfRange) {
  expect_of_run(2, "index out of range", {"--input", "int64[4,96]<5120"});
}

TEST_F(BadInput, AMalformedInputSpec) {
  expect_of_run(2, "float32[8,3,96,96]", {"--input", "float32(8)"});
}

TEST_F(BadInput, AMalformedByteSize) {
  expect_of_run(2, "1.5XB", {"--input", kQwenInput, "--threshold", "1.5XB"});
}

TEST_F(BadInput, ANegativeSize) {
  expect_of_run(2, "negative", {"--input", kQwenInput, "--prefetch", "-1"});
}

TEST_F(BadInput, AnUnknownPolicyKey) {
  const InputFile policy("policy.json", R"({"schema": "offprof.policy/1", "policy": {"treshold_bytes": 1}})");
  expect_of_run(2, "treshold_bytes", {"--input", kQwenInput, "--policy", policy.path()});
}

TEST_F(BadInput, AMissingFolder) {
  expect(2, "does not exist",
         {"run", model_path("qwen2.pt"), "--input", kQwenInput, "-o", folder_ / "nowhere/trace.json"});
}

TEST_F(BadInput, ATruncatedTrace) {
  const InputFile trace("trace.json", R"({"schema": "offprof.trace/1", "program": {)");
  expect(2, "truncated", {"tune", "--trace", trace.path()});
}

TEST_F(BadInput, ATraceOfAnotherVersion) {
  const InputFile trace("trace.json", R"({"schema": "offprof.trace/2"})");
  expect(2, "offprof.trace/1", {"tune", "--trace", trace.path()});
}

TEST_F(BadInput, AChromeTraceOfAnotherTool) {
  const InputFile trace("trace.json", R"({"traceEvents": [{"ph": "X", "name": "a", "ts": 1, "dur": 2}]})");
  expect(2, "program", {"simulate", "--trace", trace.path()});
}

TEST_F(BadInput, SuggestsTheMostSimilarCommand) {
  expect(2, "Did you mean `run`?", {"rum"});
}

TEST_F(BadInput, AStepThatNeedsMoreMemoryThanTheDeviceHas) {
  const std::vector<std::string> small = {"--input", kQwenInput,        "--policy",
                                          "keep",    "--device-memory", "5MB"};
  expect_of_run(3, "requested", small);
  expect_of_run(3, "offprof tune", small);
}

TEST_F(BadInput, AFullDiskLeavesTheOldFile) {
  const InputFile trace("trace.json", "what was there");
  constexpr rlim_t kDisk = 64 << 10;
  const Ended ended = run_program(
      {"run", model_path("qwen2.pt"), "--input", kQwenInput, "--steps", "1", "-o", trace.path()}, kDisk);
  EXPECT_EQ(ended.status, 2) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr(trace.path()));
  EXPECT_EQ(content(trace.path()), "what was there");
}

TEST_F(BadInput, CtrlCEndsARunWithStatus130AndNoFile) {
  OffprofProcess program({"run", model_path("qwen2.pt"), "--input", kQwenInput, "--steps", "1000000", "-v",
                          "-o", folder_ / "trace.json"});
  program.wait_for_error_text("training step 2 of");
  program.send(SIGINT);
  EXPECT_EQ(program.finish().status, 130);
  EXPECT_THAT(folder_.files(), IsEmpty());
}

}  // namespace
}  // namespace offprof
