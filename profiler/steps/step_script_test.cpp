#include "profiler/steps/step_script.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <memory>
#include <stdexcept>
#include <string>
#include <vector>

namespace offprof {
namespace {

using testing::ElementsAre;

StepResult step_of(Nanoseconds time) {
  StepResult step;
  step.step_time_ns = time;
  return step;
}

StepScript<Nanoseconds> time_under(std::string name) {
  const StepOrder order{preset_policy(name)};
  const StepResult step = co_await order;
  co_return step.step_time_ns;
}

StepScript<Nanoseconds> twice_under(std::string name) {
  const Nanoseconds first = co_await time_under(name);
  const Nanoseconds second = co_await time_under(name);
  co_return first + second;
}

/// Asks for steps until one takes less than 10 ns.
StepScript<std::vector<Nanoseconds>> until_fast() {
  std::vector<Nanoseconds> times;
  times.push_back(co_await twice_under("offload"));
  while (times.back() >= 10) times.push_back(co_await time_under("keep"));
  co_return times;
}

TEST(StepScript, AsksForTheStepsOfNestedScriptsInOrder) {
  std::vector<std::string> asked;
  const std::vector<Nanoseconds> steps = {100, 20, 30, 5};
  const auto times = carry_out(until_fast(), [&](const StepOrder& order) {
    asked.push_back(order.policy.name);
    return step_of(steps.at(asked.size() - 1));
  });
  EXPECT_THAT(times, ElementsAre(120, 30, 5));
  EXPECT_THAT(asked, ElementsAre("offload", "offload", "keep", "keep"));
}

StepScript<int> without_steps() {
  co_return 3;
}

TEST(StepScript, MayNeedNoStep) {
  StepScript<int> script = without_steps();
  EXPECT_EQ(script.begin(), nullptr);
  EXPECT_EQ(script.take(), 3);
}

StepScript<void> holding(std::shared_ptr<int> held) {
  const StepOrder order{preset_policy("keep")};
  co_await order;
  ++*held;
}

TEST(StepScript, FreesWhatItHoldsIfAStepFails) {
  const auto held = std::make_shared<int>(0);
  EXPECT_THROW(
      carry_out(holding(held), [](const StepOrder&) -> StepResult { throw std::runtime_error("no memory"); }),
      std::runtime_error);
  EXPECT_EQ(*held, 0);
  EXPECT_EQ(held.use_count(), 1);
}

StepScript<int> failing() {
  const StepOrder order{preset_policy("keep")};
  co_await order;
  throw std::runtime_error("steps differ");
}

StepScript<std::string> catching() {
  std::string reason;
  try {
    co_await failing();
  } catch (const std::runtime_error& error) {
    reason = error.what();
  }
  co_return reason;
}

StepScript<int> passing_on() {
  co_return co_await failing();
}

TEST(StepScript, PassesItsFailureToTheScriptThatAwaitsIt) {
  const auto run = [](const StepOrder&) { return step_of(1); };
  EXPECT_EQ(carry_out(catching(), run), "steps differ");
  EXPECT_THROW(carry_out(passing_on(), run), std::runtime_error);
}

/// Somebody else's loop drives the script: it runs the steps when it wants to.
TEST(StepScript, WaitsForStepsThatAnotherLoopRuns) {
  StepScript<Nanoseconds> script = twice_under("keep");
  const StepOrder* order = script.begin();
  int steps = 0;
  for (int tick = 0; order != nullptr; ++tick)
    if (tick % 3 == 0) order = script.go_on(step_of(++steps));
  EXPECT_EQ(steps, 2);
  EXPECT_EQ(script.take(), 3);
}

}  // namespace
}  // namespace offprof
