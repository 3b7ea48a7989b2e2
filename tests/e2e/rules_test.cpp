// Policies with rules, tested with command lines: measured, simulated, and rejected.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <fstream>
#include <nlohmann/json.hpp>

#include "e2e/offprof_process.h"
#include "e2e/reports.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using nlohmann::json;
using testing::AllOf;
using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;

/// Every placement. The threshold decides for the remaining tensors.
constexpr const char* kAllPlacements = R"([
  {"dtype": "bool", "placement": "bits"},
  {"op": "*gelu*", "placement": "quantize:uint8:128+host"},
  {"module": "*attention*", "dtype": "float32", "rank": 3, "placement": "cast:bfloat16+host"},
  {"dtype": "float32", "min_bytes": 4096, "max_bytes": 16384, "placement": "quantize:uint8"},
  {"first": 0, "last": 12, "placement": "device"},
  {"rank": 2, "placement": "host"}])";
constexpr const char* kLossless =
    R"([{"dtype": "bool", "placement": "bits+host"}, {"min_bytes": 1024, "placement": "host"}])";

class Rules : public testing::Test {
 protected:
  std::string policy(const std::string& rules) const {
    const std::string path = inputs_ / "policy.json";
    std::ofstream(path)
        << R"({"schema": "offprof.policy/1", "policy": {"threshold_bytes": 2048, "stash_count": 2, )"
        << R"("prefetch_bytes": 65536, "rules": )" << rules << "}}";
    return path;
  }

  /// Creates a small transformer from the zoo, with dropout.
  static std::string transformer() {
    return zoo_model("transformer", {"--batch", "2", "--layers", "2", "--seq", "32", "--width", "32"});
  }

  json run(const std::string& rules, const std::string& device) const {
    return report_of({"run", transformer(), "--device", device, "--policy", policy(rules), "--steps", "2",
                      "--calibration", "brief", "-o", folder_ / "trace.json"});
  }

  TestFolder folder_, inputs_;
};

/// Returns the rows of the report's ledger with this placement.
json placed(const json& report, const std::string& placement) {
  json rows = json::array();
  for (const json& row : report["ledger"])
    if (row["placement"] == placement) rows.push_back(row);
  return rows;
}

TEST_F(Rules, LosslessRulesKeepGradientsBitwise) {
  const json measured = run(kLossless, "host");
  EXPECT_EQ(measured["gradients"], "bitwise");
  EXPECT_THAT(measured["inexact"], IsEmpty());
  EXPECT_THAT(placed(measured, "bits+host"), Not(IsEmpty()));
}

TEST_F(Rules, LossyRulesReportTheErrorOfEachParameter) {
  const json measured = run(kAllPlacements, "host");
  EXPECT_THAT(measured["inexact"], IsEmpty());
  EXPECT_EQ(measured["gradients"], "lossy");
  ASSERT_THAT(measured["gradient_errors"], Not(IsEmpty()));
  for (const json& error : measured["gradient_errors"]) {
    EXPECT_LT(error["relative_norm"].get<double>(), 0.2) << error;
    EXPECT_GT(error["cosine"].get<double>(), 0.98) << error;
  }
  for (const char* placement : {"bits", "quantize:uint8:128+host", "cast:bfloat16+host", "quantize:uint8"})
    EXPECT_THAT(placed(measured, placement), Not(IsEmpty())) << placement;
}

class RulesOn : public Rules, public testing::WithParamInterface<const char*> {};

TEST_P(RulesOn, SimulatesTheBytesOfTheRun) {
  const json measured = run(kAllPlacements, GetParam());
  EXPECT_THAT(measured["inexact"], IsEmpty());
  const json simulated =
      report_of({"simulate", "--trace", folder_ / "trace.json", "--policy", inputs_ / "policy.json"});
  for (const char* key : {"device_peak_bytes", "device_allocated_peak_bytes", "device_reserved_peak_bytes",
                          "host_peak_bytes", "d2h_bytes", "h2d_bytes"})
    EXPECT_EQ(measured["measured"].value(key, json()), simulated["predicted"].value(key, json())) << key;
  EXPECT_EQ(measured["ledger"], simulated["ledger"]);
}

constexpr const char* kRecompute = R"([{"placement": "recompute"}])";

/// A recomputed tensor is not in memory at the peak.
TEST_P(RulesOn, RecomputedTensorsKeepGradientsBitwiseAndAreSimulatedExactly) {
  const json measured = run(kRecompute, GetParam());
  EXPECT_THAT(measured["inexact"], IsEmpty());
  EXPECT_EQ(measured["gradients"], GetParam() == std::string("host") ? "bitwise" : "not applicable");
  EXPECT_THAT(placed(measured, "recompute"), Not(IsEmpty()));
  const std::string trace = folder_ / "trace.json";
  const json simulated = report_of({"simulate", "--trace", trace, "--policy", inputs_ / "policy.json"});
  for (const char* key : {"device_peak_bytes", "device_allocated_peak_bytes", "device_reserved_peak_bytes",
                          "host_peak_bytes", "d2h_bytes", "h2d_bytes"})
    EXPECT_EQ(measured["measured"].value(key, json()), simulated["predicted"].value(key, json())) << key;
  EXPECT_EQ(measured["ledger"], simulated["ledger"]);
  const json kept = report_of({"simulate", "--trace", trace, "--policy", "keep"});
  EXPECT_LT(simulated["predicted"]["device_peak_bytes"], kept["predicted"]["device_peak_bytes"]);
}

TEST_F(Rules, ASimulationNeedsATraceWithTheRecomputableTensors) {
  run(kLossless, "host");
  const Ended ended =
      run_program({"simulate", "--trace", folder_ / "trace.json", "--policy", policy(kRecompute)});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err),
              HasSubstr("the trace does not record which tensors can be recomputed in backward"));
}

INSTANTIATE_TEST_SUITE_P(, RulesOn, testing::Values("host", "virtual:h200"),
                         [](const auto& test) { return std::string(test.param).substr(0, 4); });

/// Checks that the tuned policy is within the budget, no slower than any single placement that is, and
/// measured as predicted.
TEST_F(Rules, TuneOverAllPlacementsMeetsTheBudgetAndBeatsEachAlone) {
  const std::string model = inputs_ / "model.pt", trace = folder_ / "trace.json";
  ASSERT_EQ(run_program({"zoo", "make", "transformer", "-o", model, "--batch", "8", "--layers", "4", "--seq",
                         "128", "--width", "128"})
                .status,
            0);
  const auto run_under = [&](const std::string& policy, const std::vector<std::string>& more) {
    return report_of(joined({"run", model, "--device", "virtual:h200", "--link", "2GB/s", "--steps", "1",
                             "--disk-bandwidth", "1GB/s", "--policy", policy},
                            more));
  };
  const char* const kTaken = "device_reserved_peak_bytes";
  const json kept = run_under("keep", {"--transforms", "all", "-o", trace})["measured"];
  int within_budget = 0;
  for (const int percent : {92, 85, 78}) {
    SCOPED_TRACE(percent);
    const std::int64_t budget = kept[kTaken].get<std::int64_t>() * percent / 100;
    const json tuned = report_of({"tune", "--trace", trace, "--lossy", "--memory-budget",
                                  std::to_string(budget), "-o", inputs_ / "tuned.json"});
    const json& chosen = tuned["chosen"]["predicted"];
    EXPECT_LE(chosen[kTaken], budget);
    for (const json& placement : tuned["placements"]["alone"]) {
      if (placement["predicted"][kTaken] > budget) continue;
      ++within_budget;
      EXPECT_LE(chosen["step_time_ns"], placement["predicted"]["step_time_ns"]) << placement["placement"];
    }
    const json measured = run_under(inputs_ / "tuned.json", {});
    EXPECT_THAT(measured["inexact"], IsEmpty());
    for (const char* key : {kTaken, "step_time_ns"}) EXPECT_EQ(measured["measured"][key], chosen[key]) << key;
  }
  EXPECT_GT(within_budget, 0);
}

TEST_F(Rules, NamesARuleThatMatchesNothing) {
  const json measured = run(R"([{"op": "aten::nothing_of_the_kind", "placement": "host"}])", "host");
  EXPECT_THAT(measured["notes"].get<std::vector<std::string>>(),
              Contains(HasSubstr("rule 1 of the policy (host) matches no saved tensor")));
  const json simulated =
      report_of({"simulate", "--trace", folder_ / "trace.json", "--policy", inputs_ / "policy.json"});
  EXPECT_THAT(simulated["warnings"].get<std::vector<std::string>>(),
              Contains(HasSubstr("rule 1 of the policy")));
}

TEST_F(Rules, RejectsBadRulesBeforeAnythingIsWritten) {
  const auto expect_refused = [&](const std::string& rules, const std::string& what) {
    const Ended ended =
        run_program({"run", transformer(), "--policy", policy(rules), "-o", folder_ / "trace.json"});
    EXPECT_EQ(ended.status, 2) << ended.err;
    EXPECT_THAT(unwrapped(ended.err), AllOf(HasSubstr("error: "), HasSubstr(what)));
    EXPECT_THAT(folder_.files(), IsEmpty());
  };
  expect_refused(R"([{"placement": "squeeze"}])", "unknown transform 'squeeze'");
  expect_refused(R"([{"placement": "quantize:uint8:0"}])", "takes 1 to 65536 elements per block");
  expect_refused(R"([{"placement": "to the moon"}])",
                 "policy.rules[0].placement: 'to the moon' is not a placement");
  expect_refused(R"([{"opp": "x", "placement": "host"}])", "policy.rules[0]");
  expect_refused(R"([{"dtype": "bool", "placement": "quantize:uint8"}])", "rule 1 encodes saved tensor");
  expect_refused(R"([{"op": "x"}])", "placement");
}

TEST_F(Rules, ASimulationNeedsATraceWithTheTransforms) {
  run(kLossless, "host");
  const Ended ended = run_program({"simulate", "--trace", folder_ / "trace.json", "--policy",
                                   policy(R"([{"dtype": "float32", "placement": "quantize:uint8"}])")});
  EXPECT_EQ(ended.status, 2);
  EXPECT_THAT(unwrapped(ended.err),
              HasSubstr("the trace does not record the costs of encoding with quantize:uint8"));
}

}  // namespace
}  // namespace offprof
