#include "simulator/tuner/settings/replay_tree.h"

#include <gtest/gtest.h>
#include <rapidcheck/gtest.h>

#include <memory>
#include <optional>
#include <vector>

#include "simulator/tuner/settings/setting_sweep.h"
#include "tests/support/random_policy.h"
#include "tests/support/random_step.h"

namespace offprof {
namespace {

constexpr Bytes kMostBytes = 50;

struct Outcome {
  Metrics metrics;
  std::optional<LimitRanges> ranges;
  Bytes least_peak = 0;

  bool operator==(const Outcome&) const = default;
};

Outcome outcome(const ReplayTree::Replayed& replayed) {
  if (replayed.listener == nullptr) return {replayed.metrics, replayed.limit_ranges, 0};
  return {replayed.metrics, replayed.limit_ranges, replayed.listener->least_peak()};
}

struct Outcomes {
  std::vector<Outcome> outcomes;
  ReplayEffort effort;
};

Outcomes replayed(const ReplayTree& tree, const std::vector<Policy>& policies,
                  const ReplayTree::Options& options) {
  Outcomes made;
  made.outcomes.resize(policies.size());
  std::vector<ReplayTree::Job> jobs;
  for (const Policy& policy : policies) jobs.push_back({policy});
  made.effort = tree.replay(jobs, options, [&](std::size_t i, const ReplayTree::Replayed& replayed) {
    made.outcomes[i] = outcome(replayed);
  });
  return made;
}

std::vector<Policy> stashes_and_windows(std::int64_t stashes, Bytes windows) {
  std::vector<Policy> policies;
  for (std::int64_t stash = 0; stash < stashes; ++stash)
    for (Bytes window = 0; window < windows; ++window)
      policies.push_back(with_setting({}, {StashUnit::kCopies, stash, 100 * window}));
  return policies;
}

/// Returns policies of which some differ little and some differ in everything.
std::vector<Policy> any_policies(bool with_one_stash_limit) {
  auto policies = *rc::gen::resize(
      12, rc::gen::container<std::vector<Policy>>(random_policy(SchedulerKind::kOffload, kMostBytes)));
  for (std::size_t i = policies.size(); i-- > 1;) {
    Policy near = policies[i];
    near.prefetch_bytes = policies[i - 1].prefetch_bytes;
    policies.push_back(near);
    near.stash_count = policies[i - 1].stash_count;
    policies.push_back(near);
  }
  if (!with_one_stash_limit) policies.push_back(preset_policy("trl"));
  for (Policy& policy : policies)
    if (with_one_stash_limit && policy.stash_count) policy.stash_bytes.reset();
  return policies;
}

StepProgram any_chain() {
  StepProgram program = random_chain(15, kMostBytes);
  if (*rc::gen::arbitrary<bool>()) carry_tensors(program, kMostBytes);
  return program;
}

RC_GTEST_PROP(ReplayTreeProperty, SharedReplaysEqualSeparateReplays, ()) {
  const Step step(any_chain());
  const Link link = random_link();
  const std::vector<Policy> policies = any_policies(false);
  const std::vector<Outcome> made = replayed(ReplayTree(step, link), policies, {.threads = 2}).outcomes;
  for (std::size_t i = 0; i < policies.size(); ++i)
    RC_ASSERT(made[i].metrics == replay(step, policies[i], link).metrics);
}

RC_GTEST_PROP(ReplayTreeProperty, LimitRangesEqualThoseOfWholeReplays, ()) {
  const Step step(any_chain());
  const ReplayTree tree(step, random_link());
  const std::vector<Policy> policies = any_policies(true);
  const Outcomes shared = replayed(tree, policies, {.listens = true});
  const Outcomes apart = replayed(tree, policies, {.listens = true, .shares = false});
  RC_ASSERT(shared.outcomes == apart.outcomes);
  RC_ASSERT(shared.effort.whole_events == apart.effort.events);
  RC_ASSERT(shared.effort.events <= apart.effort.events);
}

TEST(ReplayTree, ReplaysForwardOnceForAllWindows) {
  const Step step(ChainSketch::program(20, 100));
  const ReplayTree tree(step, {{1e9, 10}, {1e9, 10}});
  std::size_t forward = 0;
  while (step.events()[forward].kind != EventKind::kUnpack) ++forward;
  const ReplayEffort effort = replayed(tree, stashes_and_windows(1, 4), {}).effort;
  EXPECT_EQ(effort.whole_events, 4 * step.events().size());
  EXPECT_EQ(effort.events, 4 * step.events().size() - 3 * forward);
}

RC_GTEST_PROP(ReplayTreeProperty, AReplayKeptBeforeBackwardServesOtherWindows, ()) {
  const Step step(random_chain(15, kMostBytes));
  const ReplayTree tree(step, random_link());
  std::vector<ReplayTree::Job> jobs(1);
  jobs[0].policy = *random_policy(SchedulerKind::kOffload, kMostBytes);
  std::shared_ptr<const ReplayTree::Standing> forward;
  tree.replay(jobs, {.listens = true, .keeps_forward = true},
              [&](std::size_t, const ReplayTree::Replayed& replayed) { forward = replayed.forward; });
  jobs[0].policy.prefetch_bytes = *rc::gen::inRange<Bytes>(0, 4 * kMostBytes);
  jobs[0].start = forward;
  Outcome made;
  const ReplayEffort effort =
      tree.replay(jobs, {.listens = true},
                  [&](std::size_t, const ReplayTree::Replayed& replayed) { made = outcome(replayed); });
  RC_ASSERT(made == replayed(tree, {jobs[0].policy}, {.listens = true}).outcomes[0]);
  RC_ASSERT(effort.events == step.events().size() - forward->replay.next_event());
}

TEST(ReplayTree, EffortAndResultsDoNotDependOnTheNumberOfThreads) {
  const Step step(ChainSketch::program(20, 100));
  const ReplayTree tree(step, {{1e9, 10}, {7e8, 10}});
  const std::vector<Policy> policies = stashes_and_windows(15, 15);
  const Outcomes one = replayed(tree, policies, {.threads = 1});
  const Outcomes five = replayed(tree, policies, {.threads = 5});
  EXPECT_EQ(one.outcomes, five.outcomes);
  EXPECT_EQ(one.effort.events, five.effort.events);
}

TEST(ReplayTree, LittleMemoryAllowsFewerReplaysWithTheSameResults) {
  const Step step(ChainSketch::program(20, 100));
  const ReplayTree tree(step, {{1e9, 10}, {7e8, 10}});
  const std::vector<Policy> policies = stashes_and_windows(18, 10);
  const Outcomes plenty = replayed(tree, policies, {.listens = true});
  EXPECT_GT(plenty.effort.standing, 2U);
  std::size_t fewer_events = plenty.effort.events;
  for (const std::size_t standing : {2U, 1U}) {
    const Bytes bytes = static_cast<Bytes>(4 * standing) * tree.standing_bytes();
    const Outcomes made = replayed(tree, policies, {.listens = true, .most_bytes = bytes});
    EXPECT_EQ(made.outcomes, plenty.outcomes);
    EXPECT_EQ(made.effort.standing, standing);
    EXPECT_GE(made.effort.events, fewer_events);
    fewer_events = made.effort.events;
  }
  EXPECT_EQ(fewer_events, plenty.effort.whole_events);
}

TEST(ReplayTree, WithoutSharingEveryPolicyTakesAWholeReplay) {
  const Step step(ChainSketch::program(5, 100));
  const ReplayTree tree(step, {{1e9, 10}, {7e8, 10}});
  const ReplayEffort effort = replayed(tree, stashes_and_windows(3, 3), {.shares = false}).effort;
  EXPECT_EQ(effort.events, 9 * step.events().size());
}

TEST(ReplayTree, NoPoliciesTakeNoEffort) {
  const Step step(ChainSketch::program(5, 100));
  EXPECT_EQ(replayed(ReplayTree(step, {{1e9, 10}, {7e8, 10}}), {}, {}).effort.events, 0U);
}

}  // namespace
}  // namespace offprof
