#include "traces/format/policy_io.h"

#include <gmock/gmock.h>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using ::testing::HasSubstr;
using ::testing::StartsWith;

template <typename Call>
std::string message_of(const Call& call) {
  try {
    call();
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

std::string error_of(const std::string& policy) {
  return message_of([&] { policy_from_json(nlohmann::json::parse(policy), "p.json: policy"); });
}

/// File with this content for the duration of a test.
class PolicyFileTest : public ::testing::Test {
 protected:
  std::string write(const std::string& content) {
    write_file(path_, content);
    return path_;
  }

  const TestFolder folder_;
  const std::string path_ = folder_ / "policy.json";
};

TEST(PolicyIo, KeepsTheLimitsOfADisk) {
  Policy policy;
  policy.disk_memory_bytes = 1000;
  policy.disk_buffer_bytes = 30;
  policy.rules.emplace_back().placement.place = Place::kDisk;
  EXPECT_EQ(policy_from_json(to_json(policy), "policy"), policy);
}

TEST(PolicyIo, LeavesOutTheDiskIfNoRuleUsesIt) {
  const auto json = to_json(Policy{});
  EXPECT_FALSE(json.contains("disk_memory_bytes") || json.contains("disk_buffer_bytes"));
}

TEST(PresetPolicy, KeepOffloadsNothing) {
  EXPECT_FALSE(preset_policy("keep").threshold_bytes);
}

TEST(PresetPolicy, OffloadMovesEverythingAndReloadsOnDemand) {
  const Policy policy = preset_policy("offload");
  EXPECT_EQ(policy.threshold_bytes, 0);
  EXPECT_FALSE(policy.stash_count || policy.stash_bytes);
  EXPECT_EQ(policy.prefetch_bytes, 0);
}

TEST(PresetPolicy, TrlHasTheDefaultsOfTrl) {
  const Policy policy = preset_policy("trl");
  EXPECT_EQ(policy.scheduler, SchedulerKind::kTrl);
  EXPECT_EQ(policy.threshold_bytes, 1024);
  EXPECT_EQ(policy.stash_count, 5);
}

TEST(PresetPolicy, TrlTrainerKeepsTheOutputHead) {
  const Policy policy = preset_policy("trl-trainer");
  ASSERT_EQ(policy.rules.size(), 1U);
  EXPECT_EQ(policy.rules[0].module, "*lm_head");
  EXPECT_EQ(to_string(policy.rules[0].placement), "device");
}

TEST(PresetPolicy, RejectsOtherNames) {
  EXPECT_THAT(message_of([] { preset_policy("best"); }), HasSubstr("'best'"));
}

TEST(DescribePolicy, ContainsEachSetting) {
  Policy policy;
  policy.threshold_bytes = 64 * kKiB;
  policy.stash_count = 3;
  policy.prefetch_bytes = kMiB;
  EXPECT_EQ(describe(policy), "threshold 64 KiB, stash 3, prefetch 1 MiB");
  policy.stash_bytes = 2 * kGiB;
  policy.host_memory_bytes = 1000;
  EXPECT_EQ(describe(policy), "threshold 64 KiB, stash 3 up to 2 GiB, prefetch 1 MiB, host memory 1000 B");
}

TEST(DescribePolicy, ContainsPlanAndCopyStream) {
  Policy policy;
  policy.tensors = {1, 2};
  policy.copy_streams = 1;
  EXPECT_EQ(describe(policy), "a plan of 2 tensors, no stash, reload on demand, one copy stream");
  policy.threshold_bytes = kKiB;
  EXPECT_EQ(describe(policy),
            "a plan of 2 tensors, threshold 1 KiB, no stash, reload on demand, one copy stream");
}

TEST(DescribePolicy, DescribesThePresets) {
  EXPECT_EQ(describe(preset_policy("keep")), "nothing is offloaded");
  EXPECT_EQ(describe(preset_policy("offload")), "threshold 0 B, no stash, reload on demand");
  EXPECT_EQ(describe(preset_policy("trl")), "TRL's rules, threshold 1 KiB, stash 5, reload on demand");
}

TEST(PolicyJson, ReadsBackEveryPreset) {
  for (const std::string& name : preset_names()) {
    const Policy policy = preset_policy(name);
    EXPECT_EQ(policy_from_json(to_json(policy), "here"), policy) << name;
  }
}

TEST(PolicyJson, ReadsBackEveryLimit) {
  Policy policy{"tuned", SchedulerKind::kOffload, 1, {{0, 4, 7}}, 2, 3, 4, 1, 5};
  EXPECT_EQ(policy_from_json(to_json(policy), "here"), policy);
}

TEST(PolicyJson, SortsThePlanAndRejectsDuplicates) {
  const auto read = [](const char* text) { return policy_from_json(nlohmann::json::parse(text), "here"); };
  EXPECT_EQ(read(R"({"tensors": [7, 0, 4]})").tensors, (std::vector<std::int32_t>{0, 4, 7}));
  EXPECT_EQ(error_of(R"({"tensors": [7, 0, 7]})"), "p.json: policy.tensors: names tensor 7 twice");
}

TEST(PolicyJson, RejectsSettingsThatTrlLacks) {
  EXPECT_THAT(error_of(R"({"scheduler": "trl", "tensors": [1]})"),
              HasSubstr("TRL's rules do not support plans"));
  EXPECT_THAT(error_of(R"({"scheduler": "trl", "copy_streams": 2})"), HasSubstr("use one copy stream"));
  EXPECT_THAT(error_of(R"({"scheduler": "trl", "rules": [{"placement": "host"}]})"),
              HasSubstr("allow other rules only with the placement device"));
}

TEST(PolicyJson, RejectsOtherNumbersOfCopyStreams) {
  EXPECT_THAT(error_of(R"({"copy_streams": 3})"), HasSubstr("is not between 1 and 2"));
}

TEST(ForeignPlan, IsRejected) {
  Policy policy;
  refuse_foreign_plan(policy, {""}, {"this"}, "t.json");
  policy.tensors = {1};
  refuse_foreign_plan(policy, {"this"}, {"this"}, "t.json");
  EXPECT_THAT(message_of([&] { refuse_foreign_plan(policy, {"other"}, {"this"}, "t.json"); }),
              HasSubstr("of a run with other model"));
  EXPECT_THAT(message_of([&] { refuse_foreign_plan(policy, {""}, {"this"}, "t.json"); }),
              HasSubstr("trace_fingerprint"));
}

TEST(ForeignPlan, IsJudgedByTheSavedTensorsWhereTheyAreKnown) {
  Policy policy;
  policy.tensors = {1};
  refuse_foreign_plan(policy, {"other", "same"}, {"this", "same"}, "t.json");
  refuse_foreign_plan(policy, {"this", "some"}, {"this"}, "t.json");
  refuse_foreign_plan(policy, {"this"}, {"this", "some"}, "t.json");
  EXPECT_THAT(message_of([&] {
                refuse_foreign_plan(policy, {"this", "some"}, {"this", "same"}, "t.json");
              }),
              HasSubstr("of a run with other saved tensors"));
}

TEST(ForeignPlan, TheHintNamesTheTrace) {
  Policy policy;
  policy.tensors = {1};
  const auto hint = [&](const std::string& trace) {
    try {
      refuse_foreign_plan(policy, {"other"}, {"this"}, trace);
    } catch (const Error& error) {
      return error.hint();
    }
    return std::string();
  };
  EXPECT_EQ(hint("t.json"), "Tune the trace: offprof tune t.json -o policy.json");
  EXPECT_THAT(hint(""), HasSubstr("--policy keep -o trace.json"));
}

TEST(PolicyForStep, IsTheFallbackIfThePlanWasMadeForAnotherRun) {
  Policy plan, fallback = preset_policy("trl");
  plan.tensors = {1};
  std::vector<std::string> notes;
  EXPECT_EQ(policy_for_step(plan, fallback, {"this"}, {"this"}, "", notes), plan);
  EXPECT_EQ(policy_for_step(Policy{}, fallback, {"other"}, {"this"}, "", notes), Policy{});
  EXPECT_TRUE(notes.empty());
  EXPECT_EQ(policy_for_step(plan, fallback, {"other"}, {"this"}, "", notes), fallback);
  ASSERT_EQ(notes.size(), 1U);
  EXPECT_THAT(notes[0], HasSubstr("its fallback is used"));
}

TEST(PolicyForStep, RejectsAForeignPlanWithoutFallback) {
  Policy plan;
  plan.tensors = {1};
  std::vector<std::string> notes;
  EXPECT_THAT(message_of([&] { policy_for_step(plan, std::nullopt, {"other"}, {"this"}, "", notes); }),
              HasSubstr("of a run with other model"));
}

TEST_F(PolicyFileTest, KeepsTheFallback) {
  PolicyFile file;
  file.fallback = FallbackPolicy{preset_policy("trl")};
  file.fallback->predicted.emplace().device_peak_bytes = 77;
  const PolicyFile read = read_policy_file(write(format_policy_file(file)));
  ASSERT_TRUE(read.fallback.has_value());
  EXPECT_EQ(read.fallback->policy, file.fallback->policy);
  EXPECT_EQ(read.fallback->predicted, file.fallback->predicted);
}

TEST_F(PolicyFileTest, RejectsAFallbackThatNamesTensors) {
  PolicyFile file;
  file.fallback = FallbackPolicy{};
  file.fallback->policy.tensors = {1};
  write(format_policy_file(file));
  EXPECT_THAT(message_of([&] { read_policy_file(path_); }), HasSubstr("a fallback is for other programs"));
}

TEST(PolicyJson, UsesDefaultsForMissingSettings) {
  EXPECT_EQ(policy_from_json(nlohmann::json::object(), "here"), Policy{});
}

TEST(PolicyJson, RejectsUnknownKeys) {
  EXPECT_THAT(error_of(R"({"treshold_bytes": 1})"), "p.json: policy: unknown key 'treshold_bytes'");
}

TEST(PolicyJson, RejectsNegativeSizes) {
  EXPECT_EQ(error_of(R"({"stash_bytes": -5})"), "p.json: policy.stash_bytes: -5 is negative");
}

TEST(PolicyJson, RejectsNumbersThatAreNotWhole) {
  EXPECT_THAT(error_of(R"({"prefetch_bytes": 1.5})"), HasSubstr("1.5 is not a whole number"));
  EXPECT_THAT(error_of(R"({"prefetch_bytes": "1MiB"})"), HasSubstr("is not a whole number"));
  EXPECT_THAT(error_of(R"({"prefetch_bytes": 18446744073709551615})"), HasSubstr("is not between"));
}

TEST(PolicyJson, RejectsUnknownSchedulers) {
  EXPECT_THAT(error_of(R"({"scheduler": "lru"})"), HasSubstr("'lru' is not one of offload, trl"));
}

TEST_F(PolicyFileTest, ReadsBackWhatItWrote) {
  PolicyFile file{preset_policy("trl"), Metrics{}, "sha256:1"};
  file.predicted->device_peak_bytes = 77;
  file.saved_fingerprint = "0123abcd";
  const PolicyFile read = read_policy_file(write(format_policy_file(file)));
  EXPECT_EQ(read.policy, file.policy);
  EXPECT_EQ(read.predicted, file.predicted);
  EXPECT_EQ(read.trace_fingerprint, "sha256:1");
  EXPECT_EQ(read.saved_fingerprint, "0123abcd");
}

TEST_F(PolicyFileTest, NamesFileAndPlaceInErrors) {
  write(R"({"schema": "offprof.policy/1", "policy": {"stash_count": -1}})");
  EXPECT_EQ(message_of([&] { load_policy(path_); }), path_ + ": policy.stash_count: -1 is negative");
}

TEST_F(PolicyFileTest, RejectsUnknownKeysBesideThePolicy) {
  write(R"({"schema": "offprof.policy/1", "policy": {}, "stash": 3})");
  EXPECT_THAT(message_of([&] { load_policy(path_); }), StartsWith(path_ + ": unknown key 'stash'"));
}

TEST_F(PolicyFileTest, RejectsOtherVersions) {
  write(R"({"schema": "offprof.policy/2", "policy": {}})");
  EXPECT_THAT(message_of([&] { load_policy(path_); }),
              HasSubstr("this version of offprof reads 'offprof.policy/1'"));
}

TEST_F(PolicyFileTest, ReportsATraceInsteadOfAPolicy) {
  write(R"({"schema": "offprof.trace/1", "traceEvents": []})");
  EXPECT_THAT(message_of([&] { load_policy(path_); }), HasSubstr("it is an offprof trace"));
}

TEST(LoadPolicy, AcceptsPresetNames) {
  EXPECT_EQ(load_policy("trl").policy, preset_policy("trl"));
}

TEST(LoadPolicy, ReportsAMissingPresetOrFile) {
  EXPECT_THAT(message_of([] { load_policy("fast"); }),
              HasSubstr("'fast' is neither a preset nor an existing policy file"));
}

TEST(PolicyIo, KeepsTheParameterOffloadOfTheTunedStep) {
  PolicyFile file{preset_policy("offload"), std::nullopt, "1"};
  EXPECT_EQ(parse_policy_file(format_policy_file(file), "p.json").parameters, std::nullopt);
  file.parameters = {{"host", 4096}};
  EXPECT_EQ(parse_policy_file(format_policy_file(file), "p.json").parameters, file.parameters);
}

}  // namespace
}  // namespace offprof
