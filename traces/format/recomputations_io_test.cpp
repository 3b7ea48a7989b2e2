#include "traces/format/recomputations_io.h"

#include <gmock/gmock.h>

#include "tests/support/sample_trace.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using ::testing::HasSubstr;

/// Returns a step that saves a tensor, a second one computed from it, and both again.
Trace two_tensors() {
  Trace trace = sample_trace();
  StepProgram& program = trace.program;
  program.storages.push_back({1024, StorageRole::kActivation});
  for (const std::int32_t storage : {3, 2, 3}) {
    SavedTensor saved = program.saved[0];
    saved.storage = storage;
    saved.bytes = program.storages[storage].bytes;
    program.saved.push_back(saved);
  }
  using enum EventKind;
  program.events = {{kAlloc, 2, 0}, {kPack, 0, 0}, {kAlloc, 3, 0}, {kPack, 1, 0},
                    {kPack, 2, 0},  {kPack, 3, 0}, {kFree, 2, 0},  {kFree, 3, 0}};
  program.recomputations = {
      {1, "aten::gelu", {0}, {{{16, -1}, {1024, -1}, {0, 0}}, 700, {10, 20, 30, 40, 20}}}};
  return trace;
}

/// Returns the reader's error after `edit` changed the recompute steps.
template <typename Edit>
std::string error_after(const Edit& edit) {
  const Trace trace = two_tensors();
  nlohmann::json json = nlohmann::json::parse(recomputations_to_json(*trace.program.recomputations).dump());
  edit(json);
  try {
    recomputations_from_json(JsonValue(json, "t.json: recomputations"), trace.program);
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

TEST(RecomputationsJson, ReadsBackItsOwnTrace) {
  const Trace trace = two_tensors();
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").program.recomputations, trace.program.recomputations);
}

TEST(RecomputationsJson, DistinguishesNotExaminedFromNone) {
  Trace trace = two_tensors();
  trace.program.recomputations.reset();
  EXPECT_FALSE(parse_trace(format_trace(trace), "t.json").program.recomputations);
  trace.program.recomputations.emplace();
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").program.recomputations, trace.program.recomputations);
}

TEST(RecomputationsJson, RequiresEarlierTensorsOfOtherContentAsSources) {
  EXPECT_EQ(error_after([](auto&) {}), "no error");
  EXPECT_THAT(error_after([](auto& json) { json[0]["sources"] = {1}; }),
              HasSubstr("recomputations[0].sources[0]"));
  EXPECT_THAT(error_after([](auto& json) { json[0]["sources"] = {2}; }),
              HasSubstr("recomputations[0].sources[0]"));
  EXPECT_THAT(error_after([](auto& json) { json[0]["sources"] = {-1}; }),
              HasSubstr("recomputations[0].sources[0]"));
  EXPECT_THAT(error_after([](auto& json) { json[0]["sources"] = {0, 0}; }), HasSubstr("for the second time"));
  EXPECT_THAT(error_after([](auto& json) { json[0]["tensor"] = 3, json[0]["sources"] = {1}; }),
              HasSubstr("has the content that is recomputed"));
  EXPECT_THAT(error_after([](auto& json) { json[0]["tensor"] = 4; }), HasSubstr("recomputations[0].tensor"));
}

TEST(RecomputationsJson, AllowsOneRecomputationPerContentForItsFirstTensor) {
  EXPECT_THAT(error_after([](auto& json) { json.push_back(json[0]); }),
              HasSubstr("sorted after the previous recomputation"));
  EXPECT_THAT(error_after([](auto& json) {
                json.push_back(json[0]);
                json[1]["tensor"] = 3;
              }),
              HasSubstr("not the first with its content"));
}

TEST(RecomputationsJson, RequiresTheSizeOfTheStorage) {
  EXPECT_THAT(error_after([](auto& json) { json[0]["use"]["memory"] = {512}; }),
              HasSubstr("produces 512 bytes for a storage of 1024"));
  EXPECT_THAT(error_after([](auto& json) {
                json[0]["use"]["memory"] = {1024, 1024};
              }),
              HasSubstr("must leave exactly one allocation"));
}

TEST(RecomputationsJson, RejectsATensorThatMayNotMove) {
  Trace trace = two_tensors();
  trace.program.saved[1].movability = Movability::kInput;
  EXPECT_THROW(parse_trace(format_trace(trace), "t.json"), Error);
}

}  // namespace
}  // namespace offprof
