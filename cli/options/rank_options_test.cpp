#include "cli/options/rank_options.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <utility>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsSupersetOf;
using testing::Pair;

RankOptions job(std::optional<int> world_size, std::vector<int> ranks, int nodes) {
  return {.world_size = world_size, .ranks = std::move(ranks), .nodes = nodes};
}

TEST(RankOptions, ParsesNumbersAndRangesInTheirOrder) {
  EXPECT_THAT(parse_ranks("5"), ElementsAre(5));
  EXPECT_THAT(parse_ranks("7,0,2-4"), ElementsAre(7, 0, 2, 3, 4));
}

TEST(RankOptions, RejectsWhatIsNoListOfRanks) {
  for (const char* text :
       {"", ",", "1,", "a", "-1", "1-", "4-2", "1,1", "0-2,1", "1.5", "0-5000", "99999999999"})
    EXPECT_THROW(parse_ranks(text), Error) << text;
}

TEST(RankOptions, TurnARangeRound) {
  try {
    parse_ranks("0,4-2");
    FAIL() << "no range";
  } catch (const Error& error) {
    EXPECT_EQ(error.hint(), "Give the smaller one first: 2-4.");
  }
}

TEST(WorldSizes, AreOneOrDoubleUpToTheLast) {
  EXPECT_THAT(parse_world_sizes("8"), ElementsAre(8));
  EXPECT_THAT(parse_world_sizes("1..8"), ElementsAre(1, 2, 4, 8));
  EXPECT_THAT(parse_world_sizes("3..14"), ElementsAre(3, 6, 12, 14));
  EXPECT_THAT(parse_world_sizes("5..5"), ElementsAre(5));
}

TEST(WorldSizes, AreNothingElse) {
  for (const char* text : {"", "0", "8..", "..8", "8..4", "1-8", "1.8", "x", "1..2097152"})
    EXPECT_THROW(parse_world_sizes(text), Error) << text;
}

TEST(RankOptions, RunsRankZeroByDefault) {
  RankOptions options = job(8, {}, 1);
  complete(options);
  EXPECT_THAT(options.ranks, ElementsAre(0));
}

TEST(RankOptions, RanksAndNodesHaveToFitTheWorld) {
  RankOptions beyond = job(8, {8}, 1), uneven = job(8, {}, 3), no_world = job(std::nullopt, {0}, 1);
  EXPECT_THROW(complete(beyond), Error);
  EXPECT_THROW(complete(no_world), Error);
  EXPECT_THAT([&] { complete(uneven); },
              testing::Throws<Error>(testing::Property(&Error::hint, testing::HasSubstr("--nodes 2"))));
}

TEST(RankOptions, SetsTheVariablesOfTorchrun) {
  const RankOptions options = job(16, {13}, 2);
  EXPECT_THAT(rank_environment(options, 13),
              IsSupersetOf({Pair("RANK", "13"), Pair("WORLD_SIZE", "16"), Pair("LOCAL_RANK", "5"),
                            Pair("LOCAL_WORLD_SIZE", "8"), Pair("GROUP_RANK", "1")}));
}

TEST(RankOptions, FilesOfSeveralRanksAreNumbered) {
  const RankOptions one = job(8, {3}, 1), several = job(8, {0, 3}, 1);
  EXPECT_EQ(rank_file(one, "t.json.gz", 3), "t.json.gz");
  EXPECT_EQ(rank_file(several, "t.json.gz", 3), "t.rank3.json.gz");
  EXPECT_EQ(rank_file(several, "a.json/t.json", 0), "a.json/t.rank0.json");
  EXPECT_EQ(rank_file(several, "traces.d/t", 0), "traces.d/t.rank0");
  EXPECT_EQ(rank_file(several, "", 0), "");
  RankOptions automatic = job(8, {}, 1);
  automatic.is_automatic = true;
  complete(automatic);
  EXPECT_EQ(rank_file(automatic, "t.json", 0), "t.rank0.json");
}

TEST(PlaceOfARank, IsTheUsersOrderOrItsNumber) {
  EXPECT_EQ(place_of({.ranks = {3, 0}}, 0), 1);
  EXPECT_EQ(place_of({.ranks = {3, 0}}, 3), 0);
  EXPECT_EQ(place_of({.is_automatic = true}, 7), 7);
}

}  // namespace
}  // namespace offprof
