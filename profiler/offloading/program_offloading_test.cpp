#include "profiler/offloading/program_offloading.h"

#include <gmock/gmock.h>

#include <string>
#include <thread>
#include <vector>

#include "tests/support/torch_test.h"
#include "traces/analysis/fingerprint.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

using Boundary = ProgramOffloading::Boundary;

class ProgramOffloadingTest : public TorchTest {
 protected:
  static PolicyFile file(Policy policy) { return {std::move(policy), std::nullopt, {}}; }
  static PolicyFile plan(std::vector<std::int32_t> tensors, std::string saved_fingerprint) {
    PolicyFile result = file(preset_policy("offload"));
    result.policy.tensors = std::move(tensors);
    result.saved_fingerprint = std::move(saved_fingerprint);
    return result;
  }
  /// Runs a step that saves three movable tensors of `rows` rows, and returns the gradient.
  static at::Tensor pass(ProgramOffloading& offloading, const at::Tensor& weight, std::int64_t rows) {
    offloading.enter();
    const at::Tensor loss = at::mm(at::ones({rows, 8}, at::kDouble), weight).tanh().sigmoid().sum();
    offloading.leave();
    loss.backward();
    offloading.end_backward();
    const at::Tensor gradient = weight.grad().clone();
    weight.mutable_grad() = at::Tensor();
    return gradient;
  }
  static void run_steps(ProgramOffloading& offloading, const at::Tensor& weight, int steps,
                        std::int64_t rows = 16) {
    for (int i = 0; i < steps; ++i) {
      offloading.end_step(Boundary::kStepEnd);
      offloading.begin_step(Boundary::kStepEnd);
      pass(offloading, weight, rows);
    }
    offloading.end_step(Boundary::kStepEnd);
  }
  /// Returns the fingerprint of the tensors that a pass saves, as written by hand.
  static std::string fingerprint_of_pass(std::int64_t rows) {
    const std::string n = std::to_string(rows);
    return fingerprint("float64[" + n + ", 8]\nfloat64[" + n + ", 8]\nfloat64[" + n + ", 8]\n");
  }
  static std::int64_t offloaded(const ProgramOffloading& offloading) {
    std::int64_t tensors = 0;
    for (const auto& [key, entry] : offloading.report().ledger)
      if (key.place == Place::kHost) tensors += entry.tensors;
    return tensors;
  }

  static FallbackPolicy keeps_tanh() {
    FallbackPolicy fallback{preset_policy("offload")};
    fallback.policy.rules.push_back({.op = "aten::tanh", .placement = {}});
    return fallback;
  }
  static std::int64_t kept_by_rule(const ProgramOffloading& offloading) {
    const Ledger ledger = offloading.report().ledger;
    const auto kept = ledger.find({Place::kDevice, PlacementReason::kRule});
    return kept == ledger.end() ? 0 : kept->second.tensors;
  }
  static std::int64_t encoded(const ProgramOffloading& offloading) {
    std::int64_t tensors = 0;
    for (const auto& [key, entry] : offloading.report().ledger)
      if (!key.transform.empty()) tensors += entry.tensors;
    return tensors;
  }

  /// Recomputes whatever can be.
  static PolicyFile recomputing() {
    PolicyFile result = file(preset_policy("keep"));
    result.policy.rules.push_back({.placement = {.place = Place::kRecompute}});
    return result;
  }
  static std::int64_t recomputed(const ProgramOffloading& offloading) {
    std::int64_t tensors = 0;
    for (const auto& [key, entry] : offloading.report().ledger)
      if (key.place == Place::kRecompute) tensors += entry.tensors;
    return tensors;
  }
  /// Returns the gradient of a loss behind a leaky ReLU and a dropout.
  static at::Tensor gradient_of_dropout(const at::Tensor& weight, double slope) {
    at::manual_seed(1);
    const at::Tensor input = at::randn({16, 8}, at::kDouble);
    at::dropout(at::leaky_relu(at::mm(input, weight), slope).tanh(), 0.5, true).sigmoid().sum().backward();
    const at::Tensor gradient = weight.grad().clone();
    weight.mutable_grad() = at::Tensor();
    return gradient;
  }
  /// Returns the gradient of a step under the policy.
  static at::Tensor step_with_dropout(ProgramOffloading& offloading, const at::Tensor& weight, double slope) {
    offloading.begin_step(Boundary::kStepEnd);
    at::rand({4});  // outside of the context
    offloading.enter();
    at::Tensor gradient = gradient_of_dropout(weight, slope);
    offloading.leave();
    offloading.end_backward();
    offloading.end_step(Boundary::kStepEnd);
    return gradient;
  }

  at::Tensor weight_ = at::ones({8, 8}, at::kDouble).set_requires_grad(true);
};

TEST_F(ProgramOffloadingTest, CountsStepsBetweenBoundariesOfOneKind) {
  ProgramOffloading offloading(file(preset_policy("offload")), device_, [] { return CodeLocation{}; });
  offloading.begin_step(Boundary::kEntry);
  pass(offloading, weight_, 16);
  offloading.end_step(Boundary::kStepEnd);
  EXPECT_EQ(offloading.report().steps, 0);
  EXPECT_FALSE(offloading.report().measured.has_value());
  run_steps(offloading, weight_, 3);
  EXPECT_EQ(offloading.report().steps, 3);
  EXPECT_GT(offloading.report().measured->d2h_bytes, 0);
}

TEST_F(ProgramOffloadingTest, IsIdleOnceTheGraphIsFreed) {
  ProgramOffloading offloading(file(preset_policy("offload")), device_, [] { return CodeLocation{}; });
  offloading.begin_step(Boundary::kEntry);
  offloading.enter();
  at::Tensor loss = at::mm(at::ones({16, 8}, at::kDouble), weight_).tanh().sum();
  offloading.leave();
  EXPECT_FALSE(offloading.is_idle());
  loss.reset();
  EXPECT_TRUE(offloading.is_idle());
}

TEST_F(ProgramOffloadingTest, UsesAPlanOnceAStepHasShownItsTensors) {
  ProgramOffloading offloading(plan({0}, fingerprint_of_pass(16)), device_, [] { return CodeLocation{}; });
  run_steps(offloading, weight_, 1);
  const std::int64_t without_plan = offloaded(offloading);
  run_steps(offloading, weight_, 1);
  EXPECT_GT(without_plan, offloaded(offloading));
  EXPECT_EQ(offloaded(offloading), 1);
  EXPECT_THAT(offloading.take_notes(), IsEmpty());
}

TEST_F(ProgramOffloadingTest, DropsAPlanForOtherTensorsAndSaysSoOnce) {
  ProgramOffloading offloading(plan({0}, fingerprint_of_pass(99)), device_, [] { return CodeLocation{}; });
  run_steps(offloading, weight_, 1);
  const std::int64_t without_plan = offloaded(offloading);
  run_steps(offloading, weight_, 30);
  EXPECT_EQ(offloaded(offloading), without_plan);
  EXPECT_THAT(offloading.take_notes(), ElementsAre(HasSubstr("names tensors of another program")));
}

TEST_F(ProgramOffloadingTest, UsesTheFallbackInAnotherProgramAndSaysSoOnce) {
  PolicyFile file = plan({0}, fingerprint_of_pass(99));
  file.fallback = keeps_tanh();
  ProgramOffloading offloading(std::move(file), device_, [] { return CodeLocation{}; });
  run_steps(offloading, weight_, 30);
  EXPECT_EQ(kept_by_rule(offloading), 1);
  EXPECT_THAT(offloading.take_notes(), ElementsAre(HasSubstr("the file's fallback decides instead")));
}

TEST_F(ProgramOffloadingTest, UsesTheFallbackInAStepOfAnotherSize) {
  PolicyFile file = plan({0, 1, 2}, fingerprint_of_pass(16));
  file.fallback = keeps_tanh();
  ProgramOffloading offloading(std::move(file), device_, [] { return CodeLocation{}; });
  run_steps(offloading, weight_, 2);
  EXPECT_EQ(kept_by_rule(offloading), 0);
  run_steps(offloading, weight_, 1, 24);
  EXPECT_EQ(kept_by_rule(offloading), 1);
  EXPECT_THAT(offloading.take_notes(), ElementsAre(HasSubstr("the file's fallback decides instead")));
}

TEST_F(ProgramOffloadingTest, EncodesOnceAStepHasShownItsContents) {
  Policy policy = preset_policy("offload");
  policy.rules.push_back({.placement = parse_placement("cast:bfloat16+host")});
  ProgramOffloading offloading(file(policy), device_, [] { return CodeLocation{}; });
  run_steps(offloading, weight_, 1);
  EXPECT_EQ(encoded(offloading), 0);
  run_steps(offloading, weight_, 1);
  EXPECT_EQ(encoded(offloading), 3);
  run_steps(offloading, weight_, 1, 24);
  EXPECT_EQ(encoded(offloading), 3);
}

TEST_F(ProgramOffloadingTest, DoesNotEncodeWhatTheTransformDoesNotTake) {
  Policy policy = preset_policy("offload");
  policy.rules.push_back({.placement = parse_placement("bits")});
  ProgramOffloading offloading(file(policy), device_, [] { return CodeLocation{}; });
  run_steps(offloading, weight_, 2);
  EXPECT_EQ(encoded(offloading), 0);
}

TEST_F(ProgramOffloadingTest, LeavesThePlanInAStepOfAnotherSize) {
  ProgramOffloading offloading(plan({0}, fingerprint_of_pass(16)), device_, [] { return CodeLocation{}; });
  run_steps(offloading, weight_, 1);
  const std::int64_t without_plan = offloaded(offloading);
  run_steps(offloading, weight_, 2, 24);
  EXPECT_EQ(offloaded(offloading), without_plan);
  EXPECT_THAT(offloading.take_notes(), ElementsAre(HasSubstr("a step saved other tensors")));
  run_steps(offloading, weight_, 1);
  EXPECT_EQ(offloaded(offloading), 1);
}

TEST_F(ProgramOffloadingTest, KeepsWhatAnOperatorSaved) {
  Policy policy = preset_policy("offload");
  policy.rules.push_back({.op = "aten::tanh", .placement = {}});
  ProgramOffloading offloading(file(policy), device_, [] { return CodeLocation{}; });
  run_steps(offloading, weight_, 2);
  const Ledger ledger = offloading.report().ledger;
  const auto kept = ledger.find({Place::kDevice, PlacementReason::kRule});
  ASSERT_NE(kept, ledger.end());
  EXPECT_EQ(kept->second.tensors, 1);
}

TEST_F(ProgramOffloadingTest, GradientsDoNotDependOnThePolicy) {
  const auto gradient_under = [&](PolicyFile policy) {
    ProgramOffloading offloading(std::move(policy), device_, [] { return CodeLocation{}; });
    run_steps(offloading, weight_, 3);
    offloading.begin_step(Boundary::kStepEnd);
    return pass(offloading, weight_, 16);
  };
  const at::Tensor expected = gradient_under(file(preset_policy("keep")));
  for (const PolicyFile& policy : {file(preset_policy("offload")), file(preset_policy("trl")),
                                   file(test_policy("offload", 0, 2, 1 << 20)),
                                   plan({1}, fingerprint_of_pass(16)), plan({1}, fingerprint_of_pass(99))})
    EXPECT_TRUE(bitwise_equal(gradient_under(policy), expected)) << describe(policy.policy);
}

TEST_F(ProgramOffloadingTest, AnAbandonedStepDoesNotCount) {
  ProgramOffloading offloading(file(preset_policy("offload")), device_, [] { return CodeLocation{}; });
  offloading.begin_step(Boundary::kEntry);
  pass(offloading, weight_, 16);
  offloading.abandon_step();
  EXPECT_FALSE(offloading.has_step());
  EXPECT_EQ(offloading.report().steps, 0);
}

TEST_F(ProgramOffloadingTest, RecomputesOnceTwoStepsAgree) {
  ProgramOffloading offloading(recomputing(), device_, [] { return CodeLocation{}; });
  const at::Tensor expected = gradient_of_dropout(weight_, 0.5);
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::equal(step_with_dropout(offloading, weight_, 0.5), expected));
    EXPECT_EQ(recomputed(offloading), 0);
    EXPECT_GE(offloaded(offloading), 3);  // the step need not fit with nothing offloaded
  }
  for (int i = 0; i < 2; ++i) {
    EXPECT_TRUE(at::equal(step_with_dropout(offloading, weight_, 0.5), expected));
    EXPECT_GE(recomputed(offloading), 3);  // tanh, the mask, sigmoid
  }
  EXPECT_THAT(offloading.take_notes(), IsEmpty());
}

TEST_F(ProgramOffloadingTest, DoesNotRecomputeWhatAStepMakesInAnotherWay) {
  ProgramOffloading offloading(recomputing(), device_, [] { return CodeLocation{}; });
  for (int i = 0; i < 3; ++i) step_with_dropout(offloading, weight_, 0.5);
  const std::int64_t before = recomputed(offloading);
  const at::Tensor expected = gradient_of_dropout(weight_, 0.25);
  EXPECT_TRUE(at::equal(step_with_dropout(offloading, weight_, 0.25), expected));
  EXPECT_EQ(recomputed(offloading), before - 1);
}

/// Returns the gradient of a step with a normalization, before which one tensor less is saved if
/// `is_shorter`.
at::Tensor gradient_of_norm(ProgramOffloading& offloading, const at::Tensor& weight, bool is_shorter) {
  offloading.begin_step(Boundary::kStepEnd);
  offloading.enter();
  const at::Tensor value = at::mm(at::rand({16, 8}, at::kDouble), weight).sin();
  const at::Tensor other = value.cos();
  const at::Tensor exponential = (is_shorter ? other.detach() : other).exp();
  const at::Tensor loss = at::layer_norm(value, {8}).tanh().sum() + exponential.sum();
  offloading.leave();
  loss.backward();
  offloading.end_backward();
  offloading.end_step(Boundary::kStepEnd);
  at::Tensor gradient = weight.grad().clone();
  weight.mutable_grad() = at::Tensor();
  return gradient;
}

/// The mean takes the place that the reciprocal deviation had, with the same operator, shape and arguments.
TEST_F(ProgramOffloadingTest, DoesNotTakeOneResultOfAnOperatorForAnother) {
  ProgramOffloading offloading(recomputing(), device_, [] { return CodeLocation{}; });
  ProgramOffloading plain(file(preset_policy("keep")), device_, [] { return CodeLocation{}; });
  at::manual_seed(1);
  const at::Tensor weight = at::randn({8, 8}, at::kDouble).set_requires_grad(true);
  for (int i = 0; i < 5; ++i) {
    const bool is_shorter = i == 4;
    at::manual_seed(i);
    const at::Tensor expected = gradient_of_norm(plain, weight, is_shorter);
    at::manual_seed(i);
    EXPECT_TRUE(at::equal(gradient_of_norm(offloading, weight, is_shorter), expected)) << i;
    if (i == 3) {
      EXPECT_GE(recomputed(offloading), 3);
    }
  }
}

TEST_F(ProgramOffloadingTest, AStepThatAnotherThreadEndsLeavesNothingBehind) {
  ProgramOffloading offloading(recomputing(), device_, [] { return CodeLocation{}; });
  const at::Tensor expected = gradient_of_dropout(weight_, 0.5);
  for (int i = 0; i < 5; ++i) {
    offloading.begin_step(Boundary::kStepEnd);
    offloading.enter();
    EXPECT_TRUE(at::equal(gradient_of_dropout(weight_, 0.5), expected));
    offloading.leave();
    offloading.end_backward();
    std::thread([&] { offloading.end_step(Boundary::kStepEnd); }).join();
  }
  EXPECT_GE(recomputed(offloading), 3);
}

TEST_F(ProgramOffloadingTest, RecomputesNothingIfNoTwoStepsAreAlike) {
  ProgramOffloading offloading(recomputing(), device_, [] { return CodeLocation{}; });
  for (std::int64_t rows = 1; rows < 12; ++rows) run_steps(offloading, weight_, 1, rows);
  EXPECT_EQ(recomputed(offloading), 0);
  EXPECT_THAT(offloading.take_notes(), ElementsAre(HasSubstr("no two steps in a row saved the same ones")));
}

}  // namespace
}  // namespace offprof
