#include "traces/format/rules_io.h"

#include <gmock/gmock.h>

#include "traces/base/error.h"
#include "traces/format/policy_io.h"

namespace offprof {
namespace {

using ::testing::HasSubstr;

std::vector<PolicyRule> read(const std::string& text) {
  const nlohmann::json json = nlohmann::json::parse(text);
  return rules_from_json(JsonValue(json, "p.json: policy.rules"));
}

std::string error_of(const std::string& text) {
  try {
    read(text);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RulesJson, ReadsBackWhatItWrote) {
  PolicyRule all;
  all.op = "aten::gelu*";
  all.module = "layers.*";
  all.dtype = "float32";
  all.rank = 3;
  all.min_bytes = 1024;
  all.max_bytes = 4096;
  all.first = 2;
  all.last = 40;
  all.placement = {"quantize:uint8", Place::kHost};
  const std::vector<PolicyRule> rules = {all, {}};
  const nlohmann::json json = nlohmann::json::parse(rules_to_json(rules).dump());
  EXPECT_EQ(rules_from_json(JsonValue(json, "here")), rules);
}

TEST(RulesJson, NamesTheRuleAndTheFaultyKey) {
  EXPECT_THAT(error_of(R"([{"placement": "host"}, {"placement": "host", "opp": "x"}])"),
              HasSubstr("rules[1]"));
  EXPECT_THAT(error_of(R"([{"placement": "host", "opp": "x"}])"), HasSubstr("opp"));
  EXPECT_THAT(error_of(R"([{"placement": "nowhere else"}])"), HasSubstr("rules[0].placement"));
  EXPECT_THAT(error_of(R"([{"op": "aten::*"}])"), HasSubstr("placement"));
  EXPECT_THAT(error_of(R"([{"op": "", "placement": "host"}])"), HasSubstr("rules[0].op"));
  EXPECT_THAT(error_of(R"([{"rank": -1, "placement": "host"}])"), HasSubstr("rules[0].rank"));
}

TEST(RulesJson, RejectsEmptyRanges) {
  EXPECT_THAT(error_of(R"([{"min_bytes": 5, "max_bytes": 4, "placement": "host"}])"),
              HasSubstr("min_bytes 5 is greater than max_bytes 4"));
  EXPECT_THAT(error_of(R"([{"first": 5, "last": 4, "placement": "host"}])"),
              HasSubstr("first 5 is greater than last 4"));
}

TEST(RulesJson, IsPartOfAPolicy) {
  Policy policy = preset_policy("offload");
  policy.rules = read(R"([{"dtype": "bool", "placement": "bits"}])");
  const nlohmann::json json = nlohmann::json::parse(to_json(policy).dump());
  EXPECT_EQ(policy_from_json(json, "here"), policy);
  EXPECT_THAT(describe(policy), HasSubstr("1 rule, otherwise threshold 0"));
}

TEST(RulesJson, RejectsRulesInATrlPolicy) {
  const auto json = nlohmann::json::parse(R"({"scheduler": "trl", "rules": [{"placement": "host"}]})");
  EXPECT_THROW(policy_from_json(json, "here"), Error);
}

}  // namespace
}  // namespace offprof
