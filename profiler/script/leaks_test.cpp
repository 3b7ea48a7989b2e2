#include "profiler/script/leaks.h"

#include <gtest/gtest.h>

#include <utility>
#include <vector>

namespace offprof {
namespace {

/// A step in which `aten::mean` allocates one storage and `aten::mm` another.
RecordedPass step(std::int64_t mean, Bytes mean_bytes, std::int64_t product,
                  const std::vector<std::int64_t>& freed) {
  RecordedPass pass;
  pass.names = {"forward", "aten::mean", "aten::mm", "head", "train.py:7"};
  pass.events = {{RawKind::kPhase, 0},      {RawKind::kOpBegin, 1, 0},
                 {RawKind::kOpBegin, 2, 1}, {RawKind::kAlloc, mean, mean_bytes},
                 {RawKind::kOpEnd, 2, 1},   {RawKind::kOpEnd, 1, 0},
                 {RawKind::kOpBegin, 2, 0}, {RawKind::kAlloc, product, 64},
                 {RawKind::kOpEnd, 2, 0}};
  for (const std::int64_t allocation : freed) pass.events.push_back({RawKind::kFree, allocation});
  return pass;
}

TEST(LeakFinder, NamesTheOutermostOperatorOfMemoryThatNoLaterStepFrees) {
  LeakFinder leaks;
  leaks.add(step(1, 4, 2, {2}));
  leaks.add(step(3, 4, 4, {4}));
  leaks.add(step(5, 4, 6, {6}));
  EXPECT_EQ(leaks.cause_of(4), "aten::mean in forward");
}

TEST(LeakFinder, IgnoresMemoryThatTheNextStepFrees) {
  LeakFinder leaks;
  leaks.add(step(1, 4, 2, {}));
  leaks.add(step(3, 4, 4, {2}));
  leaks.add(step(5, 4, 6, {4}));
  EXPECT_EQ(leaks.cause_of(4), "aten::mean in forward");
}

TEST(LeakFinder, NamesTheModuleAndTheLineThatSavedTheStorage) {
  LeakFinder leaks;
  for (std::int64_t id : {1, 3, 5}) {
    RecordedPass pass = step(id, 4, id + 1, {id + 1});
    RawSaved saved;
    saved.saved.module = 3;
    saved.saved.line = 4;
    saved.storage = id;
    pass.saved.push_back(saved);
    leaks.add(pass);
  }
  EXPECT_EQ(leaks.cause_of(4), "aten::mean in forward, module head, train.py:7");
}

TEST(LeakFinder, DoesNotNameAPlaceWhoseBytesDoNotExplainTheGrowth) {
  LeakFinder leaks;
  for (std::int64_t id : {1, 3, 5}) leaks.add(step(id, 4, id + 1, {id + 1}));
  EXPECT_EQ(leaks.cause_of(8), std::nullopt);
}

TEST(LeakFinder, NeedsTwoLaterSteps) {
  LeakFinder leaks;
  leaks.add(step(1, 4, 2, {2}));
  leaks.add(step(3, 4, 4, {4}));
  EXPECT_EQ(leaks.cause_of(4), std::nullopt);
}

}  // namespace
}  // namespace offprof
