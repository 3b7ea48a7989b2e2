#include "cli/tables/saved_listing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <sstream>

#include "tests/support/cli_run.h"
#include "tests/support/sample_trace.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::Not;

/// Returns a trace with three saved tensors: the relu's output, a view of it with half of its elements, and a
/// parameter.
Trace trace_of_three() {
  Trace trace = sample_trace();
  StepProgram& program = trace.program;
  program.names.insert(program.names.end(), {"layers.0", "train.py:12"});
  program.saved[0].module = 4;
  program.saved[0].line = 5;
  SavedTensor half = program.saved[0];
  half.layout = TensorLayout{"float32", {16, 32}, {32, 1}};
  half.bytes = 2048;
  SavedTensor weight;
  weight.storage = 0;
  weight.movability = Movability::kParameter;
  weight.is_parameter = true;
  weight.op = 3;
  weight.layout = TensorLayout{"float16", {3, 8}, {8, 1}};
  weight.bytes = 48;
  program.saved.push_back(half);
  program.saved.push_back(weight);
  auto& events = program.events;
  using enum EventKind;
  events.insert(events.begin() + 4, {{kPack, 1, 0}, {kPack, 2, 0}});
  const auto node_end = std::ranges::find(events, kNodeEnd, &Event::kind);
  events.insert(node_end, {{kUnpack, 1, 0}, {kRelease, 1, 0}, {kUnpack, 2, 0}, {kRelease, 2, 0}});
  return trace;
}

SavedListing listing_of(const Trace& trace, std::optional<SavedBy> by = {},
                        std::optional<std::size_t> most_shown = {}) {
  return list_saved(trace, "t.json", by, most_shown);
}

std::string text_of(const SavedListing& listing, std::size_t width = 120) {
  return to_text(listing, {.width = width});
}

TEST(SavedListing, ListsLayoutOperatorAndPlacementOfEachTensor) {
  EXPECT_THAT(
      text_of(listing_of(trace_of_three())),
      AllOf(HasSubstr("0  aten::relu     float32[32,32]  4.00 KiB  host                   2.0  layers.0\n"),
            HasSubstr("1  aten::relu     float32[16,32]  2.00 KiB  host: shared copy      2.0  layers.0\n"),
            HasSubstr("2  ReluBackward0  float16[3,8]        48 B  device: parameter      0.0  -\n")));
}

TEST(SavedListing, OmitsModuleAndContentOnANarrowPageWithANote) {
  EXPECT_THAT(text_of(listing_of(trace_of_three()), 80),
              AllOf(HasSubstr("0  aten::relu     float32[32,32]  4.00 KiB  host\n"),
                    Not(HasSubstr("layers.0")), HasSubstr("A wider terminal")));
}

TEST(SavedListing, ShowsSourceLinesOnAWidePageIfThereAreSome) {
  EXPECT_THAT(text_of(listing_of(trace_of_three()), 140),
              AllOf(HasSubstr("  2.0  layers.0  train.py:12\n"), HasSubstr("  0.0  -         -\n")));
  EXPECT_THAT(text_of(listing_of(trace_of_three()), 139), Not(HasSubstr("train.py")));
  EXPECT_THAT(text_of(listing_of(sample_trace()), 140), Not(HasSubstr("  line")));
}

TEST(SavedListing, CountsEachContentOnceForAllItsViews) {
  EXPECT_THAT(
      text_of(listing_of(trace_of_three()), 200),
      HasSubstr("3 saved tensors of 6.05 KiB in total, views of 2 contents (storage.version) that take "
                "4.05 KiB."));
}

TEST(SavedListing, NamesTheEncodingTransform) {
  Trace trace = sample_trace();
  PolicyRule rule;
  rule.placement = parse_placement("quantize:uint8+host");
  trace.policy.rules = {rule};
  TransformProfile profile;
  profile.name = "quantize:uint8";
  TransformCost cost{"float32", 1024, 1032, {}, {}};
  cost.encode.memory = {{1032, -1}};
  cost.decode.memory = {{4096, -1}};
  profile.costs = {cost};
  trace.transforms = {profile};
  EXPECT_EQ(listing_of(trace).lines.at(0).placement, "quantize:uint8+host");
}

TEST(SavedListing, SumsByOperatorModuleLineTypeOrPlacementMostBytesFirst) {
  const auto keys = [](SavedBy by) {
    std::vector<std::string> found;
    for (const SavedGroup& group : listing_of(trace_of_three(), by).groups) found.push_back(group.key);
    return found;
  };
  EXPECT_THAT(keys(SavedBy::kOp), ElementsAre("aten::relu", "ReluBackward0"));
  EXPECT_THAT(keys(SavedBy::kModule), ElementsAre("layers.0", ""));
  EXPECT_THAT(keys(SavedBy::kLine), ElementsAre("train.py:12", ""));
  EXPECT_THAT(keys(SavedBy::kDtype), ElementsAre("float32", "float16"));
  EXPECT_THAT(keys(SavedBy::kPlacement), ElementsAre("host", "device"));
  EXPECT_THAT(text_of(listing_of(trace_of_three(), SavedBy::kDtype)),
              AllOf(HasSubstr("saved, by dtype"), HasSubstr("float32                2  6.00 KiB   99.2%"),
                    HasSubstr("all                    3  6.05 KiB  100.0%")));
}

TEST(SavedListing, ShowsOnlyTheLargestOnRequest) {
  EXPECT_THAT(
      text_of(listing_of(trace_of_three(), {}, 1)),
      AllOf(HasSubstr("[32,32]"), Not(HasSubstr("[16,32]")), HasSubstr("  ... and 2 more: --top 3\n")));
  EXPECT_THAT(text_of(listing_of(trace_of_three(), SavedBy::kOp, 1)),
              AllOf(Not(HasSubstr("ReluBackward0")), HasSubstr("  ... and 1 more: --top 2\n")));
}

TEST(SavedListing, FitsThePage) {
  for (const std::size_t width : {80, 120}) {
    for (const std::optional<SavedBy> by : {std::optional<SavedBy>(), std::optional(SavedBy::kModule)}) {
      std::istringstream lines(text_of(listing_of(trace_of_three(), by), width));
      for (std::string line; std::getline(lines, line);) EXPECT_LE(display_width(line), width) << line;
    }
  }
}

TEST(SavedListing, JsonHasEveryTensorEvenIfTextShowsFewer) {
  const auto json = to_json(listing_of(trace_of_three(), {}, 1));
  EXPECT_EQ(json["saved"].size(), 3U);
  EXPECT_EQ(
      json["saved"].at(1).dump(),
      R"({"number":1,"op":"aten::relu","module":"layers.0","line":"train.py:12","dtype":"float32",)"
      R"("sizes":[16,32],"bytes":2048,"storage":2,"version":0,"storage_bytes":4096,"placement":"host","reason":"shared_copy"})");
  EXPECT_EQ(json["saved"].at(2)["module"], nullptr);
  EXPECT_EQ(json["saved"].at(2)["line"], nullptr);
  EXPECT_EQ(json["content_bytes"], 4144);
}

TEST(SavedListing, JsonOfGroupsNamesTheirCommonProperty) {
  EXPECT_EQ(to_json(listing_of(trace_of_three(), SavedBy::kOp))["saved_by_op"].at(0).dump(),
            R"({"op":"aten::relu","tensors":2,"bytes":6144})");
}

TEST(SavedListing, IsPrintedByViewSaved) {
  const TemporaryFolder folder("saved_listing");
  write_trace(folder / "t.json", trace_of_three());
  const CliRun run = run_words({"view", folder / "t.json", "--saved", "--by", "module"});
  EXPECT_EQ(run.status, 0);
  EXPECT_THAT(run.out, AllOf(HasSubstr("saved, by module"), HasSubstr("layers.0")));
}

TEST(SavedListing, RejectsByWithoutSaved) {
  EXPECT_EQ(run_words({"view", "t.json", "--by", "op"}).status, 2);
}

}  // namespace
}  // namespace offprof
