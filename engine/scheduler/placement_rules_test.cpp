#include "engine/scheduler/placement_rules.h"

#include <gmock/gmock.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Step program of saved tensors, each with its own storage unless a test says otherwise.
class RulesTest : public ::testing::Test {
 protected:
  RulesTest() { program_.names = {"aten::gelu", "aten::linear", "layers.0", "layers.1.mlp"}; }

  SavedTensor& save(std::int32_t op, const TensorLayout& layout, Bytes bytes) {
    program_.storages.push_back({bytes, StorageRole::kActivation});
    SavedTensor saved;
    saved.storage = static_cast<std::int32_t>(program_.storages.size() - 1);
    saved.op = op;
    saved.layout = layout;
    saved.bytes = bytes;
    return program_.saved.emplace_back(saved);
  }
  SavedTensor& save_floats(std::int32_t op = kGelu) { return save(op, {"float32", {4, 8}, {8, 1}}, 128); }
  SavedTensor& save_view(std::int32_t storage, const TensorLayout& layout, Bytes bytes) {
    SavedTensor& saved = save(kGelu, layout, bytes);
    saved.storage = storage;
    return saved;
  }

  PolicyRule& add_rule(const char* placement) {
    policy_.rules.emplace_back().placement = parse_placement(placement);
    return policy_.rules.back();
  }

  StepPlacements choose() const { return choose_placements(policy_, program_, profiles_); }

  /// Returns the placement of each saved tensor; `-` if no rule matches.
  std::vector<std::string> names() const {
    std::vector<std::string> result;
    const StepPlacements placements = choose();
    for (const RuledPlacement& placement : placements.by_tensor)
      result.push_back(placement ? name(placements, *placement) : "-");
    return result;
  }

  std::string error() const {
    try {
      choose();
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  }

  static constexpr std::int32_t kGelu = 0, kLinear = 1;
  StepProgram program_;
  Policy policy_;
  std::vector<TransformProfile> profiles_ = {{"pack", false, {{"float32", 32, 40, {}, {}}}}};

 private:
  static std::string name(const StepPlacements& placements, const ResolvedPlacement& placement) {
    const bool is_encoded = placement.transform >= 0;
    return to_string(
        Placement{is_encoded ? placements.transforms[placement.transform] : "", placement.place});
  }
};

TEST_F(RulesTest, WithoutRulesThereAreNoPlacements) {
  save_floats();
  EXPECT_THAT(choose().by_tensor, IsEmpty());
}

TEST_F(RulesTest, FirstMatchingRuleDecides) {
  save_floats(kGelu);
  save_floats(kLinear);
  add_rule("host").op = "aten::g*";
  add_rule("device");
  EXPECT_THAT(names(), ElementsAre("host", "device"));
}

TEST_F(RulesTest, LeavesATensorThatNoRuleMatchesToTheThreshold) {
  save_floats(kGelu);
  add_rule("host").op = "aten::linear";
  EXPECT_THAT(names(), ElementsAre("-"));
}

TEST_F(RulesTest, MatchesByEveryProperty) {
  save_floats().module = 2;
  save_floats().module = 3;
  save(kGelu, {"bool", {16}, {1}}, 16);
  add_rule("host").module = "layers.*.mlp";
  add_rule("device").dtype = "b*";
  EXPECT_THAT(names(), ElementsAre("-", "host", "device"));
  policy_.rules.clear();
  add_rule("host").rank = 1;
  add_rule("device").min_bytes = 128;
  EXPECT_THAT(names(), ElementsAre("device", "device", "host"));
  policy_.rules.clear();
  PolicyRule& middle = add_rule("host");
  middle.first = middle.last = 1;
  add_rule("device").max_bytes = 127;
  EXPECT_THAT(names(), ElementsAre("-", "host", "device"));
}

TEST_F(RulesTest, LeavesTensorsThatMayNotMove) {
  save_floats().movability = Movability::kParameter;
  add_rule("host");
  EXPECT_THAT(names(), ElementsAre("-"));
  EXPECT_THAT(choose().warnings,
              ElementsAre(HasSubstr("rule 1 of the policy (host) matches no saved tensor that "
                                    "can be offloaded")));
}

TEST_F(RulesTest, WarnsAboutARuleThatMatchesNothing) {
  save_floats();
  add_rule("host");
  add_rule("device").op = "aten::gelu";
  EXPECT_THAT(choose().warnings, ElementsAre(HasSubstr("rule 2")));
}

TEST_F(RulesTest, LooksUpTheCostOfAnEncodedTensor) {
  save_floats();
  add_rule("pack+host");
  const StepPlacements placements = choose();
  EXPECT_EQ(placements.by_tensor[0]->encoded_bytes, 40);
  EXPECT_EQ(placements.by_tensor[0]->cost, &profiles_[0].costs[0]);
  EXPECT_THAT(placements.transforms, ElementsAre("pack"));
}

TEST_F(RulesTest, DoesNotEncodeATensorThatDoesNotFillItsStorage) {
  save_floats();
  program_.storages[0].bytes = 256;
  add_rule("pack+host");
  EXPECT_THAT(names(), ElementsAre("host"));
  EXPECT_EQ(choose().by_tensor[0]->reason, PlacementReason::kUnfitToEncode);
}

TEST_F(RulesTest, EncodesAViewWithTheTensorThatFillsTheStorage) {
  save_view(save_floats().storage, {"float32", {8, 4}, {1, 8}}, 128);
  add_rule("pack");
  EXPECT_THAT(names(), ElementsAre("pack", "pack"));
}

TEST_F(RulesTest, ASliceSharesTheEncodedCopyOfTheWholeStorage) {
  save_view(save_floats().storage, {"float32", {8}, {1}}, 32);
  add_rule("pack");
  EXPECT_THAT(names(), ElementsAre("pack", "pack"));
  EXPECT_EQ(choose().by_tensor[1]->encoded_bytes, 40);
}

TEST_F(RulesTest, DoesNotEncodeATensorWithoutElements) {
  save_view(save_floats().storage, {"float32", {0}, {1}}, 0);
  add_rule("pack+host");
  EXPECT_THAT(names(), ElementsAre("host", "host"));
}

TEST_F(RulesTest, DoesNotEncodeOneContentWithTwoTransforms) {
  save_view(save_floats(kLinear).storage, {"float32", {32}, {1}}, 128);
  add_rule("pack").op = "aten::gelu";
  add_rule("host");
  EXPECT_THAT(names(), ElementsAre("host", "device"));
}

TEST_F(RulesTest, DoesNotEncodeOneContentWithTwoDtypes) {
  save_view(save_floats().storage, {"int32", {32}, {1}}, 128);
  add_rule("pack+host");
  EXPECT_THAT(names(), ElementsAre("host", "host"));
}

TEST_F(RulesTest, RejectsADtypeThatTheTransformDoesNotAccept) {
  save(kLinear, {"int64", {4}, {1}}, 32);
  add_rule("pack");
  EXPECT_THAT(error(), HasSubstr("rule 1 encodes saved tensor 0, int64[4] of aten::linear with pack"));
}

TEST_F(RulesTest, RejectsATransformThatIsMissingFromTheTrace) {
  save_floats();
  add_rule("squeeze");
  EXPECT_THAT(error(), HasSubstr("the costs of encoding with squeeze"));
}

TEST_F(RulesTest, RejectsImpossiblyLargeCosts) {
  constexpr Bytes kHuge = Bytes{1} << 45;
  profiles_[0].costs[0].encode.memory.assign(1 << 15, {kHuge, -1});
  save_floats();
  add_rule("pack");
  EXPECT_THAT(error(), HasSubstr("more than any machine has"));
}

TEST_F(RulesTest, RulesOfTrlMatchTensorsThatCannotMoveToo) {
  save_floats().movability = Movability::kParameter;
  add_rule("device");
  EXPECT_EQ(names(), (std::vector<std::string>{"-"}));
  policy_.scheduler = SchedulerKind::kTrl;
  EXPECT_EQ(names(), (std::vector<std::string>{"device"}));
}

TEST(RuleMatch, NeedsAllItsConditions) {
  const PolicyRule rule{.dtype = "float*", .rank = 2, .min_bytes = 128, .last = 3};
  const RuleSubject subject{.dtype = "float32", .rank = 2, .storage_bytes = 128, .position = 3};
  EXPECT_TRUE(matches(rule, subject));
  RuleSubject other = subject;
  other.dtype = "int64";
  EXPECT_FALSE(matches(rule, other));
  other = subject;
  other.storage_bytes = 127;
  EXPECT_FALSE(matches(rule, other));
  other = subject;
  other.position = 4;
  EXPECT_FALSE(matches(rule, other));
}

TEST(RuleMatch, FailsForAnOperatorOrModuleThatIsNotKnown) {
  const RuleSubject with_op{.op = "aten::gelu", .dtype = "float32"};
  const RuleSubject with_module{.module = "", .dtype = "float32"};
  EXPECT_FALSE(matches(PolicyRule{.op = "*"}, with_module));
  EXPECT_FALSE(matches(PolicyRule{.module = "*"}, with_op));
  EXPECT_TRUE(matches(PolicyRule{.op = "*"}, with_op));
  EXPECT_TRUE(matches(PolicyRule{.module = "*"}, with_module));
}

}  // namespace
}  // namespace offprof
