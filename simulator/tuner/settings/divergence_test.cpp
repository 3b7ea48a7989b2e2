#include "simulator/tuner/settings/divergence.h"

#include <gtest/gtest.h>

#include "tests/support/sample_program.h"

namespace offprof {
namespace {

/// Six layers, each of which saves a tensor of 100 bytes.
class DivergenceTest : public testing::Test {
 protected:
  std::size_t apart(const Policy& a, const Policy& b) const { return Divergence(step_)(a, b); }
  std::size_t first(EventKind kind, SavedId tensor) const {
    std::size_t i = 0;
    while (step_.events()[i].kind != kind || step_.events()[i].id != tensor) ++i;
    return i;
  }
  std::size_t first_unpack() const {
    std::size_t i = 0;
    while (step_.events()[i].kind != EventKind::kUnpack) ++i;
    return i;
  }
  std::size_t never() const { return step_.events().size(); }

  Step step_{ChainSketch::program(6, 100)};
};

Policy with_stash(std::int64_t count) {
  Policy policy;
  policy.stash_count = count;
  return policy;
}

TEST_F(DivergenceTest, EqualPoliciesNeverDiverge) {
  EXPECT_EQ(apart(with_stash(2), with_stash(2)), never());
}

TEST_F(DivergenceTest, WindowsDivergeAtTheFirstUnpack) {
  Policy ahead = with_stash(2);
  ahead.prefetch_bytes = 200;
  EXPECT_EQ(apart(with_stash(2), ahead), first_unpack());
}

TEST_F(DivergenceTest, StashesDivergeWhenTheSmallerIsFull) {
  EXPECT_EQ(apart(with_stash(2), with_stash(4)), first(EventKind::kPack, 2));
  EXPECT_EQ(apart(with_stash(4), with_stash(2)), first(EventKind::kPack, 2));
  EXPECT_EQ(apart(with_stash(0), with_stash(4)), first(EventKind::kPack, 0));
}

TEST_F(DivergenceTest, StashesThatNeverFillNeverDiverge) {
  EXPECT_EQ(apart(with_stash(6), with_stash(60)), never());
}

TEST_F(DivergenceTest, AStashOfBytesDivergesFromOneOfCopiesWhenEitherIsFull) {
  Policy bytes;
  bytes.stash_bytes = 350;
  EXPECT_EQ(apart(bytes, with_stash(6)), first(EventKind::kPack, 3));
  EXPECT_EQ(apart(bytes, with_stash(1)), first(EventKind::kPack, 1));
}

TEST_F(DivergenceTest, PlansDivergeAtTheFirstTensorThatOneLacks) {
  Policy a, b;
  a.tensors = {0, 2, 3};
  b.tensors = {0, 2, 4};
  EXPECT_EQ(apart(a, b), first(EventKind::kPack, 3));
  b.tensors = {0, 2};
  EXPECT_EQ(apart(a, b), first(EventKind::kPack, 3));
  EXPECT_EQ(apart(a, {}), first(EventKind::kPack, 1));
}

TEST_F(DivergenceTest, ThresholdsDivergeAtTheFirstTensorBetweenThem) {
  Policy high, higher, low;
  low.threshold_bytes = 50;
  high.threshold_bytes = 101;
  higher.threshold_bytes = 200;
  EXPECT_EQ(apart(low, high), first(EventKind::kPack, 0));
  EXPECT_EQ(apart(high, higher), never());
}

TEST_F(DivergenceTest, PoliciesThatItDoesNotExamineDivergeAtOnce) {
  Policy capped;
  capped.host_memory_bytes = 1000;
  EXPECT_EQ(apart({}, capped), 0U);
  EXPECT_EQ(apart({}, preset_policy("trl")), 0U);
}

}  // namespace
}  // namespace offprof
