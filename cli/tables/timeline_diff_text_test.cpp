#include "cli/tables/timeline_diff_text.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sstream>

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::Le;
using testing::Not;

/// Returns the difference between a simulated step and a recorded one whose second matrix product took longer
/// and waited longer.
TimelineDiff sample_diff() {
  const auto make = [](Nanoseconds mm, Nanoseconds wait, Nanoseconds copy) {
    Timeline timeline;
    const auto add = [&](SpanKind kind, const std::string& name, Nanoseconds begin, Nanoseconds duration) {
      timeline.spans.push_back({Track::kCompute, kind, name, begin, duration, 0, -1, ""});
    };
    add(SpanKind::kStep, "ProfilerStep#0", 0, 7'000'000 + mm + wait);
    add(SpanKind::kPhase, "forward", 0, 3'000'000);
    add(SpanKind::kOp, "aten::linear", 500'000, 2'000'000);
    add(SpanKind::kPhase, "backward", 3'000'000, 4'000'000 + mm + wait);
    add(SpanKind::kOp, "AddmmBackward0", 3'000'000, mm + wait);
    timeline.spans.push_back({Track::kCompute, SpanKind::kWait, "wait for copy in", 3'100'000, wait, 0, 1,
                              "the reload was asked for too late"});
    timeline.spans.push_back({Track::kH2d, SpanKind::kCopy, "copy in", 3'000'000, copy, 4'000'000, 1, ""});
    return timeline;
  };
  return *compare(make(5'000'000, 3'000'000, 2'000'000), make(4'000'000, 1'500'000, 1'000'000));
}

TEST(TimelineDiffText, ShowsTheDifferencesInTime) {
  EXPECT_EQ("\n" + to_text(sample_diff(), 10, {80, false, true}), R"(
  last step                   base      new  difference
  ───────────────────────  ───────  ───────  ──────────
  forward                  3.00 ms  3.00 ms           0
  backward                 12.0 ms  9.50 ms    -2.50 ms
  ───────────────────────  ───────  ───────  ──────────
  operators                7.00 ms  6.00 ms    -1.00 ms
  stalls                   3.00 ms  1.50 ms    -1.50 ms
  rest, between operators  5.00 ms  5.00 ms           0
  ───────────────────────  ───────  ───────  ──────────
  step                     15.0 ms  12.5 ms    -2.50 ms

  operators without stalls  count     base      new  difference
  ────────────────────────  ─────  ───────  ───────  ──────────
  AddmmBackward0                1  5.00 ms  4.00 ms    -1.00 ms

  stalls            tensor  reason                     base      new  difference
  ────────────────  ──────  ──────────────────────  ───────  ───────  ──────────
  wait for copy in       1  the reload was asked …  3.00 ms  1.50 ms    -1.50 ms

  copies               count     bytes     busy       rate
  ───────────────────  ─────  ────────  ───────  ─────────
  to the device, base      1  3.81 MiB  2.00 ms  2.00 GB/s
  to the device, new       1  3.81 MiB  1.00 ms  4.00 GB/s

  places, with stalls  phase          at     base      new  difference
  ───────────────────  ────────  ───────  ───────  ───────  ──────────
  AddmmBackward0 #1    backward  3.00 ms  8.00 ms  5.50 ms    -2.50 ms
)");
}

TEST(TimelineDiffText, FitsThePage) {
  for (const std::size_t width : {80, 120}) {
    std::istringstream lines(to_text(sample_diff(), 10, {width, false, true}));
    for (std::string line; std::getline(lines, line);) EXPECT_THAT(display_width(line), Le(width)) << line;
  }
}

TEST(TimelineDiffText, ShowsWaitsForLaunchByPhase) {
  TimelineDiff diff = sample_diff();
  diff.launch_waits = {{"forward", {0, 7}, {0, 2'000'000}}};
  EXPECT_THAT(to_text(diff, 10, {80, false, true}), HasSubstr(R"(
  waits for launch  count  base      new  difference
  ────────────────  ─────  ────  ───────  ──────────
  forward           0 → 7  0 ns  2.00 ms    +2.00 ms
)"));
  const auto json = to_json(diff)["waits_for_launch"];
  EXPECT_EQ(json[0]["phase"], "forward");
  EXPECT_EQ(json[0]["count"]["new"], 7);
  EXPECT_EQ(json[0]["time"]["difference_ns"], 2'000'000);
}

TEST(TimelineDiffText, SumsUpTheRowsThatAreNotShown) {
  const std::string text = to_text(sample_diff(), 0, {.details = true});
  EXPECT_THAT(text, HasSubstr("1 more"));
  EXPECT_THAT(text, Not(HasSubstr("AddmmBackward0")));
}

TEST(TimelineDiffText, JsonHasTheSameFigures) {
  const auto json = to_json(sample_diff());
  EXPECT_EQ(json["step"]["difference_ns"], -2'500'000);
  EXPECT_EQ(json["by_operator"][0]["op"], "AddmmBackward0");
  EXPECT_EQ(json["by_operator"][0]["time"]["difference_ns"], -1'000'000);
  EXPECT_EQ(json["by_wait"][0]["tensor"], 1);
  EXPECT_EQ(json["by_wait"][0]["new_reason"], "the reload was asked for too late");
  EXPECT_EQ(json["copies"][0]["direction"], "h2d");
  EXPECT_EQ(json["copies"][0]["busy"]["base_ns"], 2'000'000);
  EXPECT_EQ(json["places"][0]["base_at_ns"], 3'000'000);
  EXPECT_EQ(json["places"][0]["waits"]["difference_ns"], -1'500'000);
}

}  // namespace
}  // namespace offprof
