#include "engine/slices/plan/slice_plan.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <algorithm>
#include <limits>
#include <set>

namespace offprof {
namespace {

using testing::ElementsAre;

/// Returns pieces with the given saved bytes and nothing else.
PieceCosts saving(const std::vector<Bytes>& saved) {
  PieceCosts costs;
  for (const Bytes bytes : saved) costs.pieces.push_back({.saved_bytes = bytes});
  return costs;
}

TEST(SlicePlanOf, MakesTheLargestSliceAsSmallAsPossible) {
  const SlicePlan plan = plan_slices(saving({7, 2, 5, 10, 8}), 2);
  EXPECT_THAT(plan.first_pieces, ElementsAre(0, 3));
  EXPECT_EQ(plan.largest_bytes, 18);
}

TEST(SlicePlanOf, OneSliceIsTheWholeModel) {
  EXPECT_THAT(plan_slices(saving({1, 2, 3}), 1).first_pieces, ElementsAre(0));
}

TEST(SlicePlanOf, MaximumNumberOfSlicesHasOnePieceEach) {
  EXPECT_THAT(plan_slices(saving({1, 2, 3}), 3).first_pieces, ElementsAre(0, 1, 2));
}

TEST(SlicePlanOf, CountsASharedParameterOncePerSlice) {
  PieceCosts costs = saving({1, 1, 1, 1});
  for (const std::size_t piece : {2, 3}) costs.pieces[piece].parameters = {{7, 100}};
  const SlicePlan plan = plan_slices(costs, 2);
  EXPECT_EQ(plan.largest_bytes, 102);
}

TEST(SlicePlanOf, PrefersTheSmallestBoundariesAmongEqualPlans) {
  PieceCosts costs = saving({10, 1, 1, 10});
  costs.pieces[1].boundary_bytes = 5;
  costs.pieces[2].boundary_bytes = 5;
  costs.pieces[3].boundary_bytes = 1;
  const SlicePlan plan = plan_slices(costs, 2);
  EXPECT_THAT(plan.first_pieces, ElementsAre(0, 3));
  EXPECT_EQ(plan.boundary_bytes, 1);
}

TEST(SlicePlanOf, BeginsNoSliceAtAForbiddenPiece) {
  PieceCosts costs = saving({1, 1, 1, 1});
  costs.pieces[2].can_begin_a_slice = false;
  EXPECT_EQ(most_slices(costs), 3U);
  EXPECT_THAT(plan_slices(costs, 2).first_pieces, ElementsAre(0, 1));
}

TEST(SlicePlanOf, ChoosesTheNumberByTheSumOfLargestSliceAndBoundaries) {
  PieceCosts costs = saving({100, 100, 100, 100});
  const auto best_count = [&](Bytes boundary) {
    for (std::size_t i = 1; i < costs.pieces.size(); ++i) costs.pieces[i].boundary_bytes = boundary;
    return plan_slices(costs, std::nullopt).first_pieces.size();
  };
  EXPECT_EQ(best_count(10), 4U);
  EXPECT_EQ(best_count(60), 2U);
  EXPECT_EQ(best_count(500), 1U);
}

TEST(SlicePlanOf, CutsVeryManyPiecesOnlyAtSmallBoundaries) {
  PieceCosts costs = saving(std::vector<Bytes>(2000, 1));
  for (std::size_t i = 1; i < costs.pieces.size(); ++i) costs.pieces[i].boundary_bytes = i % 10 == 0 ? 1 : 50;
  const SlicePlan plan = plan_slices(costs, 20);
  EXPECT_EQ(plan.first_pieces.size(), 20U);
  EXPECT_LE(plan.largest_bytes, 110);
}

/// Returns the smallest possible largest slice, by trying all plans.
Bytes least_by_trying(const PieceCosts& costs, std::size_t count) {
  const std::size_t pieces = costs.pieces.size();
  Bytes least = std::numeric_limits<Bytes>::max();
  for (std::uint32_t cuts = 0; cuts < 1U << (pieces - 1); ++cuts) {
    if (static_cast<std::size_t>(__builtin_popcount(cuts)) != count - 1) continue;
    Bytes largest = 0, bytes = 0;
    std::set<std::int64_t> seen;
    for (std::size_t i = 0; i < pieces; ++i) {
      if (i > 0 && (cuts >> (i - 1) & 1U) != 0) {
        bytes = costs.pieces[i].boundary_bytes;
        seen.clear();
      }
      bytes += costs.pieces[i].saved_bytes;
      for (const PieceCosts::Weight& weight : costs.pieces[i].parameters)
        if (seen.insert(weight.id).second) bytes += weight.bytes;
      largest = std::max(largest, bytes);
    }
    least = std::min(least, largest);
  }
  return least;
}

RC_GTEST_PROP(SlicePlanOf, IsAsGoodAsTheBestOfAllPlans, ()) {
  PieceCosts costs;
  const auto pieces = *rc::gen::inRange<std::size_t>(1, 8);
  for (std::size_t i = 0; i < pieces; ++i) {
    PieceCosts::Piece piece{.saved_bytes = *rc::gen::inRange<Bytes>(0, 20)};
    if (i > 0) piece.boundary_bytes = *rc::gen::inRange<Bytes>(0, 10);
    for (std::int64_t id = 0; id < 3; ++id)
      if (*rc::gen::arbitrary<bool>()) piece.parameters.push_back({id, 4 * (id + 1)});
    costs.pieces.push_back(piece);
  }
  const auto count = *rc::gen::inRange<std::size_t>(1, pieces + 1);
  const SlicePlan plan = plan_slices(costs, count);
  RC_ASSERT(plan.first_pieces.size() == count);
  RC_ASSERT(plan.largest_bytes == least_by_trying(costs, count));
}

}  // namespace
}  // namespace offprof
