#include "engine/devices/virtual_gpu/values/peer_values.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::Optional;

std::vector<char> bytes_of(const std::vector<float>& numbers) {
  std::vector<char> bytes(numbers.size() * sizeof(float));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

std::optional<std::vector<float>> combined(Collective collective, const std::vector<std::vector<char>>& given,
                                           int rank, Reduction reduction = Reduction::kOther, int root = 0) {
  const auto bytes = combine({.collective = collective,
                              .type = NumberType::kFloat32,
                              .reduction = reduction,
                              .is_root = root == rank,
                              .root = root},
                             rank, given);
  if (!bytes) return std::nullopt;
  std::vector<float> numbers(bytes->size() / sizeof(float));
  std::memcpy(numbers.data(), bytes->data(), bytes->size());
  return numbers;
}

const std::vector<std::vector<char>> kGiven = {bytes_of({1, 2}), bytes_of({30, 4})};

TEST(PeerValues, ReducesTheNumbersOfAllRanks) {
  EXPECT_THAT(combined(Collective::kAllReduce, kGiven, 0, Reduction::kSum), Optional(ElementsAre(31, 6)));
  EXPECT_THAT(combined(Collective::kAllReduce, kGiven, 0, Reduction::kMax), Optional(ElementsAre(30, 4)));
  EXPECT_THAT(combined(Collective::kAllReduce, kGiven, 0, Reduction::kProduct), Optional(ElementsAre(30, 8)));
  EXPECT_THAT(combined(Collective::kAllReduce, kGiven, 1, Reduction::kMin), Optional(ElementsAre(1, 2)));
  EXPECT_THAT(combined(Collective::kAllReduce, kGiven, 1, Reduction::kAverage),
              Optional(ElementsAre(15.5, 3)));
  EXPECT_THAT(combined(Collective::kReduceScatter, kGiven, 1, Reduction::kSum), Optional(ElementsAre(6)));
}

TEST(PeerValues, MovesTheNumbersOfAllRanks) {
  EXPECT_THAT(combined(Collective::kAllGather, kGiven, 0), Optional(ElementsAre(1, 2, 30, 4)));
  EXPECT_THAT(combined(Collective::kAllToAll, kGiven, 1), Optional(ElementsAre(2, 4)));
  EXPECT_THAT(combined(Collective::kBroadcast, {{}, bytes_of({7})}, 0, Reduction::kOther, 1),
              Optional(ElementsAre(7)));
}

TEST(PeerValues, IsUnknownIfARankDoesNotKnowItsPart) {
  EXPECT_EQ(combined(Collective::kAllGather, {bytes_of({1}), {}}, 0), std::nullopt);
  EXPECT_EQ(combined(Collective::kBroadcast, {{}, bytes_of({1})}, 0), std::nullopt);
  EXPECT_EQ(combined(Collective::kAllReduce, kGiven, 0, Reduction::kOther), std::nullopt);
}

/// Numbers of two bytes each, as they are in memory.
std::vector<char> halves(const std::vector<std::uint16_t>& numbers) {
  std::vector<char> bytes(numbers.size() * sizeof(std::uint16_t));
  std::memcpy(bytes.data(), numbers.data(), bytes.size());
  return bytes;
}

TEST(PeerValues, ChoosesTheLargestOfSixteenBitFloats) {
  CollectiveCall call{.collective = Collective::kAllReduce, .bytes = 6, .type = NumberType::kBfloat16};
  // 1, -2 and 2^-133 (subnormal) against -1, -3 and 0.
  const std::vector<std::vector<char>> given = {halves({0x3F80, 0xC000, 0x0001}),
                                                halves({0xBF80, 0xC040, 0x0000})};
  call.reduction = Reduction::kMax;
  EXPECT_EQ(combine(call, 0, given), halves({0x3F80, 0xC000, 0x0001}));
  call.reduction = Reduction::kMin;
  EXPECT_EQ(combine(call, 0, given), halves({0xBF80, 0xC040, 0x0000}));
  call.reduction = Reduction::kSum;
  EXPECT_EQ(combine(call, 0, given), std::nullopt);
  call.reduction = Reduction::kAverage;
  EXPECT_EQ(combine(call, 0, given), std::nullopt);
  EXPECT_EQ(combine(call, 0, {given[0], given[0]}), given[0]);
  call.type = NumberType::kFloat16;
  call.reduction = Reduction::kMax;
  // 65504, 2^-24 and -1 against infinity, 2^-14 and -0.5.
  EXPECT_EQ(combine(call, 0, {halves({0x7BFF, 0x0001, 0xBC00}), halves({0x7C00, 0x0400, 0xB800})}),
            halves({0x7C00, 0x0400, 0xB800}));
}

}  // namespace
}  // namespace offprof
