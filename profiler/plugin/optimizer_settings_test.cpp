#include "profiler/plugin/optimizer_settings.h"

#include <gtest/gtest.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

TEST(OptimizerSettings, ReadsNames) {
  EXPECT_EQ(parse_optimizer("none").kind, OptimizerKind::kNone);
  EXPECT_EQ(parse_optimizer("sgd"), OptimizerSettings{.kind = OptimizerKind::kSgd});
  EXPECT_EQ(parse_optimizer("adamw"), OptimizerSettings{});
  EXPECT_EQ(parse_optimizer("adafactor").kind, OptimizerKind::kAdafactor);
}

TEST(OptimizerSettings, ReadsOptions) {
  EXPECT_TRUE(parse_optimizer("sgd:momentum").has_momentum);
  const OptimizerSettings both{.state = StatePrecision::kEightBits, .has_master = true};
  EXPECT_EQ(parse_optimizer("adamw:state=8bit,master=fp32"), both);
  EXPECT_EQ(parse_optimizer("adamw:master=fp32,state=8bit"), both);
  EXPECT_EQ(parse_optimizer("adamw:state=fp32").state, StatePrecision::kFloat32);
  EXPECT_EQ(parse_optimizer("adamw:state=bf16").state, StatePrecision::kBfloat16);
}

TEST(OptimizerSettings, RefusesAnythingElse) {
  for (const char* text : {"", "adam", "AdamW", "adamw:", "adamw:state", "adamw:state=fp16",
                           "adamw:master=bf16", "adamw:momentum", "sgd:state=fp32", "adafactor:master=fp32",
                           "adamw:state=fp32,", "adamw:state=fp32,state=bf16", "sgd:momentum,momentum"}) {
    try {
      parse_optimizer(text);
      FAIL() << text;
    } catch (const Error& error) {
      EXPECT_EQ(error.what(), "unknown optimizer '" + std::string(text) + "'");
    }
  }
}

}  // namespace
}  // namespace offprof
