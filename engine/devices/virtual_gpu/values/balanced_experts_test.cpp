#include "engine/devices/virtual_gpu/values/balanced_experts.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace offprof {
namespace {

using testing::ElementsAre;

constexpr std::int64_t kTokens = 10, kExperts = 4, kChoices = 2;

class BalancedExpertsTest : public testing::Test {
 protected:
  void route() {
    begin("aten::topk", {kTokens, kExperts});
    end();
  }
  void begin(std::string_view name, std::vector<std::int64_t> sizes) {
    OpCall& call = calls_.emplace_back();
    call.name = name;
    call.operands.push_back({.sizes = std::move(sizes)});
    experts_.begin_op(call);
  }
  std::optional<BalancedExperts::Contents> end() { return experts_.end_op(); }
  std::optional<std::int64_t> number_of_nonzero(std::vector<std::int64_t> sizes) {
    begin("aten::nonzero", std::move(sizes));
    const auto number = experts_.read_number();
    end();
    return number;
  }

  BalancedExperts experts_;
  std::vector<OpCall> calls_;
};

TEST_F(BalancedExpertsTest, ExpertsShareAllChoices) {
  route();
  std::vector<std::int64_t> shares;
  for (int i = 0; i < kExperts; ++i) shares.push_back(*number_of_nonzero({kChoices, kTokens}));
  EXPECT_THAT(shares, ElementsAre(5, 5, 5, 5));
  shares.clear();
  for (int i = 0; i < kExperts; ++i) shares.push_back(*number_of_nonzero({1, kTokens}));
  EXPECT_THAT(shares, ElementsAre(3, 3, 2, 2));
}

TEST_F(BalancedExpertsTest, EachExpertHasTokensAndItsNumberCanBeRead) {
  route();
  begin("aten::nonzero", {kExperts});
  char before = 0, result = 0, after = 0;
  experts_.block_allocated(&before);
  EXPECT_EQ(experts_.read_number(), kExperts);
  begin("aten::empty", {});
  EXPECT_FALSE(end());
  experts_.block_allocated(&result);
  experts_.block_allocated(&after);
  const auto contents = end();
  ASSERT_TRUE(contents);
  EXPECT_EQ(contents->address, &result);
  EXPECT_THAT(contents->numbers, ElementsAre(0, 1, 2, 3));
}

TEST_F(BalancedExpertsTest, NothingIsKnownWithoutARoutingOrOfOtherMasks) {
  EXPECT_FALSE(number_of_nonzero({kExperts}));
  route();
  EXPECT_FALSE(number_of_nonzero({kTokens + 3}));
  EXPECT_FALSE(experts_.read_number());  // outside of the operator
}

}  // namespace
}  // namespace offprof
