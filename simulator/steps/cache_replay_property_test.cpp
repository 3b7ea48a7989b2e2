// Properties of the caching allocator's figures over random step programs and policies.
#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <optional>

#include "simulator/steps/cache_replay.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

constexpr Bytes kMostBytes = 50;

RC_GTEST_PROP(PredictStepProperty, IsAbsentJustWhereItTakesMoreThanTheMost, ()) {
  StepProgram program = random_chain(8, kMostBytes);
  if (*rc::gen::arbitrary<bool>()) carry_tensors(program, kMostBytes);
  move_to_gpu(program);
  if (*rc::gen::arbitrary<bool>()) program.allocator->settings = "expandable_segments:True";
  const Step step(program);
  const Policy policy = *random_policy(*random_scheduler(), kMostBytes * kMiB);
  CacheSetting setting{.steps = *rc::gen::inRange(1, 6)};
  if (*rc::gen::arbitrary<bool>()) setting.device_memory_bytes = *rc::gen::inRange(1, 200) * kMiB;
  const Metrics metrics = predict_step(step, policy, setting);
  const Bytes taken = device_bytes_taken(metrics);
  RC_ASSERT(predict_step_within(taken, step, policy, setting) == std::optional(metrics));
  RC_ASSERT(!predict_step_within(taken - 1, step, policy, setting));
}

}  // namespace
}  // namespace offprof
