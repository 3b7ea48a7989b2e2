// Activation checkpointing (`--checkpoint`), tested with command lines: submodules that save nothing and run
// again in backward.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <fstream>
#include <nlohmann/json.hpp>
#include <sstream>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr const char* kBytes[] = {"device_peak_bytes",
                                  "device_allocated_peak_bytes",
                                  "device_reserved_peak_bytes",
                                  "host_peak_bytes",
                                  "d2h_bytes",
                                  "h2d_bytes"};

class CheckpointedModules : public testing::Test {
 protected:
  /// Creates a model from the zoo: `transformer` has dropout, `resnet` has batch norm.
  static std::string model(const std::string& name) {
    std::vector<std::string> options = {"--batch", "4"};
    if (name == "transformer")
      options.insert(options.end(), {"--layers", "4", "--seq", "64", "--width", "64"});
    return zoo_model(name, options);
  }

  json run(const std::string& name, const std::vector<std::string>& more) const {
    return report_of(
        joined({"run", model(name), "--steps", "1", "--calibration", "brief", "-o", trace_}, more));
  }
  std::string policy_file(const std::string& rules) const {
    const std::string path = folder_ / "policy.json";
    std::ofstream(path) << R"({"schema": "offprof.policy/1", "policy": {"rules": )" << rules << "}}";
    return path;
  }

  TestFolder folder_;
  std::string trace_ = folder_ / "trace.json";
};

struct Case {
  const char* model;
  const char* device;
};

class CheckpointedModulesOf : public CheckpointedModules, public testing::WithParamInterface<Case> {
 protected:
  json run_here(std::vector<std::string> more) const {
    more.insert(more.end(), {"--device", GetParam().device});
    return run(GetParam().model, more);
  }
};

TEST_P(CheckpointedModulesOf, ReduceMemoryAndKeepGradients) {
  const json without = run_here({"--policy", "keep"});
  const json with = run_here({"--policy", "keep", "--checkpoint", "*.layer?"});
  EXPECT_EQ(with["gradients"], without["gradients"]);
  EXPECT_THAT(with["inexact"], IsEmpty());
  EXPECT_LT(with["measured"]["device_peak_bytes"], without["measured"]["device_peak_bytes"]);
}

TEST_P(CheckpointedModulesOf, AreSimulatedExactlyUnderAnyPolicy) {
  for (const std::vector<std::string>& policy :
       {std::vector<std::string>{"--policy", "trl"},
        {"--threshold", "0", "--stash", "1", "--prefetch", "64KiB"}}) {
    std::vector<std::string> words = policy;
    words.insert(words.end(), {"--checkpoint", "*.layer?"});
    const json measured = run_here(words);
    EXPECT_THAT(measured["inexact"], IsEmpty());
    EXPECT_GT(measured["measured"]["d2h_bytes"], 0);
    run_here({"--policy", "keep", "--checkpoint", "*.layer?"});
    words = {"simulate", "--trace", trace_};
    words.insert(words.end(), policy.begin(), policy.end());
    const json simulated = report_of(words);
    for (const char* key : kBytes)
      EXPECT_EQ(measured["measured"].value(key, json()), simulated["predicted"].value(key, json())) << key;
  }
}

INSTANTIATE_TEST_SUITE_P(, CheckpointedModulesOf,
                         testing::Values(Case{"transformer", "host"}, Case{"resnet", "host"},
                                         Case{"transformer", "virtual:h200"}, Case{"resnet", "virtual:h200"}),
                         [](const auto& test) {
                           return std::string(test.param.model) + "On" +
                                  std::string(test.param.device).substr(0, 4);
                         });

TEST_F(CheckpointedModules, AreNamedInReportsOfSimulations) {
  run("transformer", {"--checkpoint", "*.layer?,tokens"});
  const json patterns = {"*.layer?", "tokens"};
  EXPECT_EQ(report_of({"simulate", "--trace", trace_, "--policy", "trl"})["checkpoint"], patterns);
  EXPECT_EQ(report_of({"tune", "--trace", trace_})["checkpoint"], patterns);
  EXPECT_THAT(run_program({"view", trace_}).out, HasSubstr("checkpoint *.layer?  tokens"));
}

TEST_F(CheckpointedModules, MatchPatternsInBrackets) {
  const auto peak_of = [&](const std::vector<std::string>& patterns) {
    std::vector<std::string> words = {"--checkpoint"};
    words.insert(words.end(), patterns.begin(), patterns.end());
    return run("transformer", words)["measured"]["device_peak_bytes"];
  };
  EXPECT_EQ(peak_of({"[bl][l]*.layer[0-9]"}), peak_of({"*.layer?"}));
  EXPECT_EQ(peak_of({"[bl]*.layer[0]", "*.layer[1-9]"}), peak_of({"*.layer?"}));
}

TEST_F(CheckpointedModules, RulesPlaceTheirInputsByModulePath) {
  const json measured =
      run("transformer",
          {"--checkpoint", "*.layer?", "--policy",
           policy_file(R"([{"op": "offprof::checkpoint", "module": "*.layer3", "placement": "host"},
                                          {"placement": "device"}])")});
  EXPECT_THAT(measured["inexact"], IsEmpty());
  EXPECT_EQ(measured["gradients"], "bitwise");
  std::int64_t on_host = 0;
  for (const json& row : measured["ledger"])
    if (row["placement"] == "host") on_host += row["tensors"].get<std::int64_t>();
  EXPECT_GE(on_host, 1);
  EXPECT_LE(on_host, 2);  // the layer's input and a mask
}

TEST_F(CheckpointedModules, CombineWithParameterOffload) {
  for (const std::string device : {"host", "virtual:h200"}) {
    SCOPED_TRACE(device);
    const json measured = run("transformer", {"--device", device, "--checkpoint", "*.layer?",
                                              "--offload-params", "host", "--threshold", "0"});
    EXPECT_THAT(measured["inexact"], IsEmpty());
    EXPECT_EQ(measured["gradients"], device == "host" ? "bitwise" : "not applicable");
  }
}

TEST_F(CheckpointedModules, SelectSubmodulesOfAnExportedModel) {
  const json measured = report_of({"run", model_path("qwen2.pt"), "--input", "@" + model_path("qwen2.inputs"),
                                   "--steps", "1", "--threshold", "0", "--checkpoint", "*.layers.*"});
  EXPECT_EQ(measured["gradients"], "bitwise");
  EXPECT_THAT(measured["inexact"], IsEmpty());
}

TEST_F(CheckpointedModules, RejectAPatternThatMatchesNothing) {
  const Ended ended =
      run_program({"run", model("transformer"), "--checkpoint", "*.layer?,encoder.*", "-o", trace_});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err),
              AllOf(HasSubstr("error: checkpoint: 'encoder.*' matches no submodule of the model"),
                    HasSubstr("its submodules are ")));
  EXPECT_THAT(folder_.files(), IsEmpty());
}

/// A budget that no policy meets if the parameters stay on the device.
TEST_F(CheckpointedModules, AreComparedWithOtherConfigurations) {
  const std::vector<std::string> on_gpu = {"--device", "virtual:h200", "--policy", "keep"};
  // Only parameter offload fits.
  const std::string budget = keeps_cublas_workspaces() ? "70MiB" : "37MiB";
  std::vector<std::string> tune = {"tune", "--memory-budget", budget, "-o", folder_ / "policy.json"};
  for (const std::vector<std::string>& flags :
       {std::vector<std::string>{}, {"--checkpoint", "blocks.layer?"}, {"--offload-params", "host"}}) {
    const std::string trace = folder_ / ("way" + std::to_string(tune.size()) + ".json");
    report_of(joined(joined({"run", model("transformer"), "--steps", "1", "-o", trace}, on_gpu), flags));
    tune.insert(tune.end(), {"--trace", trace});
  }
  const json tuned = report_of(tune);
  const json& best = *std::ranges::find_if(tuned["configurations"],
                                           [](const json& tried) { return tried["is_best"].get<bool>(); });
  EXPECT_THAT(best["flags"].get<std::string>(), HasSubstr("--offload-params host"));
  std::vector<std::string> flags;
  std::istringstream words(best["flags"].get<std::string>());
  for (std::string word; words >> word;) flags.push_back(word);
  const json measured = report_of(joined({"run", model("transformer"), "--steps", "1", "--device",
                                          "virtual:h200", "--policy", folder_ / "policy.json"},
                                         flags));
  for (const char* key : kBytes)
    EXPECT_EQ(measured["measured"].value(key, 0), best["chosen"]["predicted"].value(key, 0)) << key;
}

}  // namespace
}  // namespace offprof
