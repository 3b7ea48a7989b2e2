// What a machine may do to a step: each call of the device that can fail does so.
#include <gmock/gmock.h>

#include <set>
#include <tuple>

#include "tests/hazards/failing_device.h"
#include "tests/hazards/hazard_fixture.h"
#include "tests/hazards/scenarios.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;

/// Small steps that between them copy in every way.
std::vector<Scenario> small_scenarios() {
  std::vector<Scenario> small = all_scenarios();
  std::erase_if(small, [](const Scenario& scenario) {
    static const std::set<std::string> kNames = {"Chain",
                                                 "Transposed",
                                                 "Slices",
                                                 "LstmCell",
                                                 "SharedSubgraph",
                                                 "InterleavedMicroBatches",
                                                 "CheckpointedRegions",
                                                 "UnusedBranch"};
    return !kNames.contains(scenario.name);
  });
  return small;
}

/// What the n-th call's failure makes of a step.
struct Outcome {
  std::string message;  ///< empty: it did not end in an error
  bool has_failed = false;
};

/// Runs a scenario on a device that fails, which leaves either plain autograd's gradients or an error, and
/// nothing else.
class FaultTest : public HazardTest, public testing::WithParamInterface<std::tuple<std::string, Scenario>> {
 protected:
  const HazardTest::Run& run() const { return std::get<1>(GetParam()).run; }

  template <typename Wrapper>
  void open_faulty() {
    open(std::get<0>(GetParam()));
    if (IsSkipped()) return;
    faulty_ = &wrap<Wrapper>();
    expected_ = gradients(run(), std::nullopt);
  }

  /// Has the first call fail, the second, and so on to the last, and hands each outcome to `judge`.
  template <typename Judge>
  void for_every_call(const Policy& policy, bool and_all_after_it, Judge judge) {
    expect_equal(gradients(run(), policy), expected_);
    const Leftovers before = leftovers();
    Outcome outcome;
    int call = 0;
    do {
      SCOPED_TRACE("call " + std::to_string(++call));
      outcome = fail_at(call, and_all_after_it, policy);
      if (outcome.has_failed) judge(outcome.message);
      ASSERT_EQ(leftovers(), before);
    } while (outcome.has_failed);
    EXPECT_THAT(outcome.message, IsEmpty());
    failed_ += call - 1;
    expect_equal(gradients(run(), policy), expected_);
  }

  FaultyDevice* faulty_ = nullptr;
  int failed_ = 0;

 private:
  Outcome fail_at(int call, bool and_all_after_it, const Policy& policy) {
    faulty_->fail_at(call, and_all_after_it);
    std::vector<at::Tensor> actual;
    const std::string message = message_of([&] { actual = gradients(run(), policy); });
    const bool has_failed = faulty_->has_failed();
    faulty_->fail_at(0);
    if (message.empty()) expect_equal(actual, expected_);
    return {message, has_failed};
  }

  std::vector<at::Tensor> expected_;
};

TEST_P(FaultTest, ACallThatFailsEndsInItsErrorAndLeavesNothing) {
  open_faulty<FailingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/false, [&](const std::string& message) {
      if (!message.empty()) {
        EXPECT_THAT(message, HasSubstr(FailingDevice::kMessage));
      }
    });
  }
  EXPECT_GT(failed_, 50);
}

TEST_P(FaultTest, ADeviceThatIsLostEndsTheStepInItsErrorAndLeavesNothing) {
  open_faulty<FailingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/true, [&](const std::string& message) {
      if (!message.empty()) {
        EXPECT_THAT(message, HasSubstr(FailingDevice::kMessage));
      }
    });
  }
}

/// What was lost may be the only copy; where it is not, nobody need be told.
TEST_P(FaultTest, ACopyThatDoesNotArriveIsAnErrorAndNeverAWrongNumber) {
  open_faulty<LosingDevice>();
  if (IsSkipped()) return;
  if (device().torch_device().is_cuda()) GTEST_SKIP() << "a GPU that loses a copy is lost";
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/false, [&](const std::string& message) {
      if (!message.empty()) {
        EXPECT_THAT(message, HasSubstr(LosingDevice::kMessage));
      }
    });
  }
  EXPECT_GT(failed_, 50);
}

TEST_P(FaultTest, ADiskThatIsFullAtAnyMomentChangesNoNumber) {
  open_faulty<FullDiskDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for (const bool for_good : {false, true})
      for_every_call(policy, for_good, [](const std::string& message) { EXPECT_THAT(message, IsEmpty()); });
  }
  EXPECT_GT(failed_, 10);
}

/// The second time there is memory.
TEST_P(FaultTest, AReloadThatTheDeviceRefusesOnceIsMadeUnlessTrlsRulesHoldThereIsNoSecondTime) {
  open_faulty<RefusingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/false, [&](const std::string& message) {
      const bool has_second_time = policy.scheduler != SchedulerKind::kTrl;
      EXPECT_THAT(message, has_second_time ? testing::Matcher<std::string>(IsEmpty())
                                           : HasSubstr("cannot be brought back for backward"));
      if (has_second_time) {
        EXPECT_FALSE(device().take_out_of_memory().has_value());
      }
    });
  }
  EXPECT_GT(failed_, 5);
}

TEST_P(FaultTest, ReloadsThatTheDeviceRefusesForGoodEndInAnErrorOrAreNotNeeded) {
  open_faulty<RefusingDevice>();
  if (IsSkipped()) return;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    for_every_call(policy, /*and_all_after_it=*/true, [&](const std::string& message) {
      if (!message.empty()) {
        EXPECT_THAT(message, HasSubstr("cannot be brought back for backward"));
      }
    });
  }
}

INSTANTIATE_TEST_SUITE_P(, FaultTest,
                         testing::Combine(testing::ValuesIn(devices_under_test()),
                                          testing::ValuesIn(small_scenarios())),
                         [](const auto& test) {
                           return std::get<1>(test.param).name + "_" + std::get<0>(test.param);
                         });

}  // namespace
}  // namespace offprof
