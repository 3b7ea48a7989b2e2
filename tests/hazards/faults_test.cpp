// Tests of steps on a failing machine: each call of the device that can fail does so.
#include <gmock/gmock.h>

#include <memory>
#include <set>
#include <tuple>

#include "profiler/recorder/pass_recorder.h"
#include "tests/conformance/inverted.h"
#include "tests/hazards/fault_fixture.h"
#include "tests/hazards/scenarios.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Returns small scenarios that together use every kind of copy.
std::vector<Scenario> small_scenarios() {
  const std::set<std::string> names = {"Chain",
                                       "Transposed",
                                       "Slices",
                                       "LstmCell",
                                       "SharedSubgraph",
                                       "InterleavedMicroBatches",
                                       "CheckpointedRegions",
                                       "UnusedBranch",
                                       "CheckpointedTwoForwardsOneBackward",
                                       "APassInLayerSlices"};
  std::vector<Scenario> small = all_scenarios();
  std::erase_if(small, [&](const Scenario& scenario) { return !names.contains(scenario.name); });
  OFFPROF_CHECK(small.size() == names.size());  // each name is still that of a scenario
  return small;
}

/// Runs a scenario on a failing device. The result must be plain autograd's gradients or an error, and
/// nothing may be left.
class FaultTest : public FaultFixture, public testing::WithParamInterface<std::tuple<std::string, Scenario>> {
 protected:
  template <typename Wrapper>
  void open_faulty() {
    FaultFixture::open_faulty<Wrapper>(std::get<0>(GetParam()));
    if (!IsSkipped()) expected_ = gradients(scenario().plainly(), std::nullopt);
  }

  void for_every_call(const Policy& policy, bool and_all_after_it, const Judge& judge) {
    FaultFixture::for_every_call([&] { return gradients(scenario().run, policy); }, expected_,
                                 and_all_after_it, judge);
  }

  /// Fails some calls of a recorded step.
  void for_some_calls(const Policy& policy, bool and_all_after_it, const Judge& judge) {
    constexpr int kRuns = 4;
    FaultFixture::for_some_calls(
        kRuns, [&] { expect_equal(recorded_gradients(policy), expected_); }, and_all_after_it, judge);
  }

 private:
  const Scenario& scenario() const { return std::get<1>(GetParam()); }

  std::vector<at::Tensor> recorded_gradients(const Policy& policy) {
    device().synchronize();
    device().forget_marks();
    at::manual_seed(kSeed);
    PassRecorder recorder(device(), /*wants_node_ends=*/true);
    Graph graph(device().torch_device());
    auto step = std::make_shared<OffloadStep>(device(), policy, unrecorded_guide(policy),
                                              std::make_shared<const Residents>(), &recorder);
    const auto stop = [](OffloadStep* listening) { listening->stop_listening(); };
    const std::unique_ptr<OffloadStep, decltype(stop)> listens(step.get(), stop);
    {
      const CurrentStep current(step);
      scenario().run(graph);
      step->backward_end();
    }
    recorder.end_step();
    recorder.finish();
    return {graph.x.grad(), graph.w.grad()};
  }

  std::vector<at::Tensor> expected_;
};

TEST_P(FaultTest, AFailedCallEndsWithItsErrorAndLeavesNothing) {
  open_faulty<FailingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/false, expect_planted_failure);
  }
  EXPECT_GT(failed(), 50);
}

TEST_P(FaultTest, ALostDeviceEndsTheStepWithItsErrorAndLeavesNothing) {
  open_faulty<FailingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/true, expect_planted_failure);
  }
}

/// Marks are set in destructors too, which cannot throw.
TEST_P(FaultTest, AFailedMarkInARecordedStepIsItsErrorAndLeavesNothing) {
  open_faulty<MarkFailingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for (const bool and_all_after_it : {false, true})
      for_some_calls(policy, and_all_after_it, [](const std::string& message) {
        EXPECT_THAT(message, HasSubstr(std::string(kPlantedFailure) + "a mark"));
      });
  }
  EXPECT_GT(failed(), 50);
}

TEST_P(FaultTest, ALostDeviceEndsARecordedStepWithItsErrorAndLeavesNothing) {
  open_faulty<FailingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_some_calls(policy, /*and_all_after_it=*/true, expect_planted_failure);
  }
  EXPECT_GT(failed(), 20);
}

/// Runs on the host only: a GPU that loses a copy is lost as a whole.
class LostCopyTest : public FaultTest {};

/// The lost copy may be the only one of a tensor. If it is not, no error is needed.
TEST_P(LostCopyTest, ALostCopyIsAnErrorAndNeverAWrongValue) {
  open_faulty<LosingDevice>();
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/false, [&](const std::string& message) {
      if (!message.empty()) {
        EXPECT_THAT(message, HasSubstr(LosingDevice::kMessage));
      }
    });
  }
  EXPECT_GT(failed(), 50);
}

TEST_P(FaultTest, ADiskThatFillsUpAtAnyMomentChangesNoResult) {
  open_faulty<FullDiskDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for (const bool for_good : {false, true})
      for_every_call(policy, for_good, [](const std::string& message) { EXPECT_THAT(message, IsEmpty()); });
  }
  EXPECT_GT(failed(), 10);
}

/// The device has memory at the second attempt.
TEST_P(FaultTest, AReloadRefusedOnceIsRepeatedUnlessTrlsRulesApply) {
  open_faulty<RefusingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/false, [&](const std::string& message) {
      const bool has_second_time = policy.scheduler != SchedulerKind::kTrl;
      EXPECT_THAT(message, has_second_time ? testing::Matcher<std::string>(IsEmpty())
                                           : HasSubstr("cannot be reloaded for backward"));
      if (has_second_time) {
        EXPECT_FALSE(device().take_out_of_memory().has_value());
      }
    });
  }
  EXPECT_GT(failed(), 5);
}

TEST_P(FaultTest, ReloadsRefusedForeverEndInAnErrorOrAreNotNeeded) {
  open_faulty<RefusingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/true, [&](const std::string& message) {
      if (!message.empty()) {
        EXPECT_THAT(message, HasSubstr("cannot be reloaded for backward"));
      }
    });
  }
}

std::string name_of(const testing::TestParamInfo<FaultTest::ParamType>& test) {
  return std::get<1>(test.param).name + "_" + std::get<0>(test.param);
}

INSTANTIATE_TEST_SUITE_P(, FaultTest,
                         testing::Combine(testing::ValuesIn(devices_under_test()),
                                          testing::ValuesIn(small_scenarios())),
                         name_of);
GTEST_ALLOW_UNINSTANTIATED_PARAMETERIZED_TEST(LostCopyTest);  // in the test program of the virtual GPU
INSTANTIATE_TEST_SUITE_P(, LostCopyTest,
                         testing::Combine(testing::ValuesIn(host_under_test()),
                                          testing::ValuesIn(small_scenarios())),
                         name_of);

}  // namespace
}  // namespace offprof
