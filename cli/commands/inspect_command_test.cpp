#include "cli/commands/commands.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "cli/reports/inspect_report.h"
#include "tests/support/cli_run.h"
#include "tests/support/sample_trace.h"
#include "tests/support/test_folder.h"
#include "traces/analysis/baselines.h"
#include "traces/format/policy_io.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

class InspectCommand : public testing::Test {
 protected:
  std::string file(const std::string& name, const std::string& content) const {
    std::ofstream(folder_ / name, std::ios::binary) << content;
    return folder_ / name;
  }
  /// Writes a safetensors file with the tensors b, F32 [2], and a, I64 [].
  std::string safetensors() const {
    const std::string header = R"({"b":{"dtype":"F32","shape":[2],"data_offsets":[8,16]},)"
                               R"("a":{"dtype":"I64","shape":[],"data_offsets":[0,8]}})";
    std::string length(8, '\0');
    length[0] = static_cast<char>(header.size());
    return file("m.safetensors", length + header + std::string(16, '\1'));
  }
  static std::string text_of(const std::string& path, std::size_t width = 80) {
    const CliRun run = run_words({"inspect", path}, {.width = width});
    EXPECT_EQ(run.status, 0) << run.err;
    return run.out;
  }
  static json json_of(const std::string& path) {
    const CliRun run = run_words({"inspect", path, "--format", "json"});
    EXPECT_EQ(run.status, 0) << run.err;
    return json::parse(run.out);
  }

  TestFolder folder_;
};

TEST_F(InspectCommand, ListsTheTensorsOfASafetensorsFileByName) {
  const json report = json_of(safetensors());
  EXPECT_EQ(report["kind"], "checkpoint");
  EXPECT_EQ(report["tensor_count"], 2);
  EXPECT_EQ(report["tensor_bytes"], 16);
  EXPECT_EQ(report["tensors"], json::parse(R"([{"name": "a", "dtype": "int64", "shape": [], "bytes": 8},
                            {"name": "b", "dtype": "float32", "shape": [2], "bytes": 8}])"));
}

TEST_F(InspectCommand, ShowsNameTypeShapeBytesAndTheSum) {
  EXPECT_EQ(text_of(safetensors()), folder_ / "m.safetensors" + ": checkpoint, 2 tensors, 16 B\n\n" +
                                        "  tensor     dtype    shape  bytes\n"
                                        "  ─────────  ───────  ─────  ─────  ──────\n"
                                        "  a          int64    []         8   (8 B)\n"
                                        "  b          float32  [2]        8   (8 B)\n"
                                        "  ─────────  ───────  ─────  ─────  ──────\n"
                                        "  2 tensors                     16  (16 B)\n");
}

TEST_F(InspectCommand, ListsAStateDictWithoutRunningItsPickle) {
  const json report = json_of(OFFPROF_TEST_CHECKPOINTS "/state_dict.pt");
  EXPECT_EQ(report["kind"], "checkpoint");
  EXPECT_EQ(report["tensors"][1],
            json::parse(R"({"name": "0.weight", "dtype": "float32", "shape": [4, 3], "bytes": 48})"));
  const CliRun module = run_words({"inspect", OFFPROF_TEST_CHECKPOINTS "/module.pt"});
  EXPECT_EQ(module.status, 2);
  EXPECT_THAT(module.err, HasSubstr("torch.nn.modules.container.Sequential"));
}

TEST_F(InspectCommand, ListsTheParametersOfATorchScriptModel) {
  const json report = json_of(OFFPROF_TEST_MODELS "/shufflenet.pt");
  EXPECT_EQ(report["kind"], "model");
  EXPECT_EQ(report["tensor_count"], 338);
  EXPECT_EQ(report["tensor_bytes"], 1440424);
}

TEST_F(InspectCommand, FitsInto80Columns) {
  std::istringstream lines(text_of(OFFPROF_TEST_MODELS "/shufflenet.pt"));
  for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), 80U) << line;
}

TEST_F(InspectCommand, ListsTheSavedTensorsOfATrace) {
  write_trace(folder_ / "t.json.gz", sample_trace());
  const json report = json_of(folder_ / "t.json.gz");
  EXPECT_EQ(report["kind"], "trace");
  EXPECT_EQ(report["model"]["name"], "model.pt");
  EXPECT_EQ(report["tensors"], json::parse(R"([{"name": "0 aten::relu", "dtype": "float32", "shape": [32, 32],
                             "bytes": 4096}])"));
  EXPECT_THAT(text_of(folder_ / "t.json.gz"),
              AllOf(HasSubstr("trace, 1 saved tensor, 4.00 KiB"), HasSubstr("model      model.pt"),
                    HasSubstr("device_peak_bytes")));
}

TEST_F(InspectCommand, DescribesAPolicy) {
  PolicyFile policy;
  policy.policy = preset_policy("trl");
  policy.trace_fingerprint = "0123abcd";
  policy.predicted.emplace().device_peak_bytes = 4096;
  const std::string path = file("p.json", format_policy_file(policy));
  const json report = json_of(path);
  EXPECT_EQ(report["kind"], "policy");
  EXPECT_EQ(report["made_for"], "0123abcd");
  EXPECT_EQ(report["policy"]["name"], "trl");
  EXPECT_EQ(report["predicted"]["device_peak_bytes"], 4096);
  EXPECT_FALSE(report.contains("tensors"));
  EXPECT_THAT(text_of(path), AllOf(HasSubstr("p.json: policy\n"), HasSubstr("tuned for  run 0123abcd"),
                                   HasSubstr("predicted"), Not(HasSubstr("tensors"))));
}

TEST_F(InspectCommand, DescribesABaselineAndAReport) {
  const StepSummary summary = figures_of(sample_trace(), "t.json");
  const std::string baseline = file("b.json", format_baseline(summary, "0.1.0"));
  EXPECT_EQ(json_of(baseline)["kind"], "baseline");
  EXPECT_EQ(json_of(baseline)["measured"]["device_peak_bytes"], 4192);
  write_trace(folder_ / "t.json", sample_trace());
  const CliRun view = run_words({"view", folder_ / "t.json", "--format", "json"});
  EXPECT_EQ(json_of(file("r.json", view.out))["kind"], "report");
}

struct Refusal {
  const char* content;
  const char* message;
};
class RefusedFile : public InspectCommand, public testing::WithParamInterface<Refusal> {};

TEST_P(RefusedFile, IsAnErrorThatSaysWhy) {
  const CliRun run = run_words({"inspect", file("f", GetParam().content), "-o", folder_ / "list"});
  EXPECT_EQ(run.status, 2);
  EXPECT_EQ(run.out, "");
  EXPECT_THAT(unwrapped(run.err), HasSubstr(GetParam().message));
  EXPECT_THAT(folder_.files(), ElementsAre("f"));
}

INSTANTIATE_TEST_SUITE_P(All, RefusedFile,
                         testing::Values(Refusal{"hello", "not a file that offprof can describe"},
                                         Refusal{"", "not a file that offprof can describe"},
                                         Refusal{"\x80\x02}q", "in the old format of torch.save"},
                                         Refusal{"PK\x03\x04 and nothing else", "damaged or truncated"},
                                         Refusal{"{\"schema\": \"offprof.trace/2\"}", "offprof.trace/1"},
                                         Refusal{"{\"a\": ", "truncated"}));

TEST_F(InspectCommand, RejectsAMissingFile) {
  const CliRun run = run_words({"inspect", folder_ / "none.pt"});
  EXPECT_EQ(run.status, 2);
  EXPECT_THAT(unwrapped(run.err), HasSubstr("No such file"));
}

}  // namespace
}  // namespace offprof
