#include "traces/format/transforms_io.h"

#include <gmock/gmock.h>

#include "tests/support/sample_trace.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using ::testing::HasSubstr;

TransformProfile sample_profile() {
  TransformCost cost;
  cost.dtype = "float32";
  cost.elements = 1024;
  cost.encoded_bytes = 1032;
  cost.encode = {{{1032, -1}, {4096, -1}, {0, 1}}, 700, {10, 20, 30, 40, 20}};
  cost.decode = {{{4096, -1}}, 300};
  return {"quantize:uint8", false, {cost}};
}

/// Returns the reader's error after `edit` changed a profile.
template <typename Edit>
std::string error_after(const Edit& edit) {
  nlohmann::json json = nlohmann::json::parse(transforms_to_json({sample_profile()}).dump());
  edit(json);
  try {
    transforms_from_json(JsonValue(json, "t.json: transforms"));
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(TransformsJson, ReadsBackItsOwnTrace) {
  Trace trace = sample_trace();
  trace.transforms = {sample_profile()};
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").transforms, trace.transforms);
}

TEST(TransformsJson, RejectsDuplicates) {
  EXPECT_THAT(error_after([](auto& json) { json.push_back(json[0]); }), HasSubstr("for the second time"));
  EXPECT_THAT(error_after([](auto& json) { json[0]["costs"].push_back(json[0]["costs"][0]); }),
              HasSubstr("costs[1]"));
}

TEST(TransformsJson, RequiresMemoryToLeaveOneResult) {
  const auto error_with = [](const nlohmann::json& memory) {
    return error_after([&](auto& json) { json[0]["costs"][0]["encode"]["memory"] = memory; });
  };
  EXPECT_THAT(error_with({10, 20}), HasSubstr("must leave exactly one allocation"));
  EXPECT_THAT(error_with({10, -1}), HasSubstr("must leave exactly one allocation"));
  EXPECT_THAT(error_with({10, -1, -1}), HasSubstr("already freed"));
  EXPECT_THAT(error_with({-1, 10}), HasSubstr("memory[0]"));
  EXPECT_THAT(error_with({0, 10}), HasSubstr("0 bytes"));
}

TEST(TransformsJson, RejectsImpossibleFigures) {
  EXPECT_THAT(error_after([](auto& json) { json[0]["costs"][0]["encoded_bytes"] = std::int64_t{1} << 60; }),
              HasSubstr("encoded_bytes"));
  EXPECT_THAT(error_after([](auto& json) { json[0]["costs"][0]["decode"]["compute_ns"] = -1; }),
              HasSubstr("compute_ns"));
}

TEST(GradientErrors, ReadBackTheirOwnTrace) {
  Trace trace = sample_trace();
  trace.gradients = "lossy";
  trace.gradient_errors = {{"w", 0.5, 0.25, -0.125}};
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").gradient_errors, trace.gradient_errors);
}

}  // namespace
}  // namespace offprof
