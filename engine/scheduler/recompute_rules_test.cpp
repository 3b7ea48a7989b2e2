#include "engine/scheduler/recompute_rules.h"

#include <gmock/gmock.h>

#include "engine/scheduler/placement_rules.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;
using ::testing::IsEmpty;

/// Chain of saved tensors: tensor i fills storage i and is recomputed from tensor i - 1.
class RecomputeRules : public ::testing::Test {
 protected:
  explicit RecomputeRules(int tensors = 4) {
    program_.names = {"op"};
    program_.recomputations.emplace();
    for (int i = 0; i < tensors; ++i) {
      save(i);
      if (i > 0) program_.recomputations->push_back({i, "aten::relu", {i - 1}, {{{128, -1}}}});
    }
  }

  void save(std::int32_t storage) {
    while (static_cast<std::int32_t>(program_.storages.size()) <= storage)
      program_.storages.push_back({128, StorageRole::kActivation});
    SavedTensor saved;
    saved.storage = storage;
    saved.layout = TensorLayout{"float32", {32}, {1}};
    saved.bytes = 128;
    program_.saved.push_back(saved);
  }

  PolicyRule& add_rule(const char* placement) {
    policy_.rules.emplace_back().placement = parse_placement(placement);
    return policy_.rules.back();
  }

  /// Returns the places under the names that the ledger uses.
  std::vector<std::string> places() {
    std::vector<std::string> result;
    const StepPlacements placements = choose_placements(policy_, program_, profiles_);
    for (const RuledPlacement& placement : placements.by_tensor) {
      if (placement) {
        EXPECT_EQ(placement->place == Place::kRecompute, placement->recomputation != nullptr);
      }
      result.emplace_back(!placement ? "-"
                          : placement->reason == PlacementReason::kUnfitToRecompute
                              ? "unfit"
                              : std::string(to_string(placement->place)));
    }
    warnings_ = placements.warnings;
    return result;
  }

  Policy policy_;
  StepProgram program_;
  std::vector<TransformProfile> profiles_;
  std::vector<std::string> warnings_;
};

TEST_F(RecomputeRules, KeepsATensorWithoutARecomputation) {
  add_rule("recompute");
  EXPECT_THAT(places(), ElementsAre("unfit", "recompute", "recompute", "recompute"));
  EXPECT_THAT(warnings_, IsEmpty());
}

TEST_F(RecomputeRules, AllTensorsOfAContentGetItsRecomputation) {
  save(2);
  add_rule("recompute").first = 4;
  EXPECT_THAT(places(), ElementsAre("-", "-", "-", "-", "recompute"));
}

TEST_F(RecomputeRules, DoesNotRecomputeFromALossyEncodedTensor) {
  const TransformCost cost = {"float32", 32, 16, {{{16, -1}}}, {{{128, -1}}}};
  for (const bool is_lossless : {true, false}) {
    profiles_ = {{"pack", is_lossless, {cost}}};
    policy_.rules.clear();
    add_rule("pack").last = 1;
    add_rule("recompute");
    EXPECT_THAT(places(), ElementsAre("device", "device", is_lossless ? "recompute" : "unfit", "recompute"));
  }
}

TEST_F(RecomputeRules, RejectsRecomputeRulesIfTheTraceHasNoRecomputations) {
  add_rule("recompute");
  program_.recomputations.reset();
  try {
    places();
    FAIL();
  } catch (const Error& error) {
    EXPECT_THAT(error.what(), HasSubstr("does not record which tensors can be recomputed"));
  }
}

TEST_F(RecomputeRules, WarnsIfNoTensorCanBeRecomputed) {
  add_rule("recompute");
  program_.recomputations->clear();
  EXPECT_THAT(places(), ElementsAre("unfit", "unfit", "unfit", "unfit"));
  EXPECT_THAT(warnings_, ElementsAre(HasSubstr("no tensor that a rule places on recompute")));
}

class LongChain : public RecomputeRules {
 protected:
  LongChain() : RecomputeRules(2 * kLongestRecompute + 2) {}
};

TEST_F(LongChain, StopsAtTheMaximumLength) {
  add_rule("recompute");
  const std::vector<std::string> found = places();
  for (int i = 0; i < 2 * kLongestRecompute + 2; ++i)
    EXPECT_EQ(found[i], i % (kLongestRecompute + 1) == 0 ? "unfit" : "recompute") << i;
}

TEST_F(LongChain, CountsASharedSourceOncePerUse) {
  for (Recomputation& recomputation : *program_.recomputations)
    if (recomputation.tensor > 1) recomputation.sources.push_back(recomputation.tensor - 2);
  add_rule("recompute");
  const std::vector<std::string> found = places();
  // Recompute steps: 1, 2, 4, 7, 12, 20, 33.
  EXPECT_EQ(found[6], "recompute");
  EXPECT_EQ(found[7], "unfit");
}

}  // namespace
}  // namespace offprof
