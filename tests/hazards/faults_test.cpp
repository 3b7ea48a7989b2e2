// What a machine may do to a step: each call of the device that can fail does so once.
#include <gmock/gmock.h>

#include <set>
#include <tuple>

#include "tests/hazards/failing_device.h"
#include "tests/hazards/hazard_fixture.h"
#include "tests/hazards/scenarios.h"

namespace offprof {
namespace {

using testing::HasSubstr;

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

class FaultTest : public HazardTest, public testing::WithParamInterface<std::tuple<std::string, Scenario>> {
 protected:
  void SetUp() override {
    open(std::get<0>(GetParam()));
    if (!IsSkipped()) failing_ = &wrap<FailingDevice>();
  }
  const HazardTest::Run& run() const { return std::get<1>(GetParam()).run; }

  /// What was ready to run when a backward failed, LibTorch keeps until the thread's next backward.
  void clear_ready_queue() {
    Graph graph(device().torch_device());
    graph.x.sum().backward();
  }

  FailingDevice* failing_ = nullptr;
};

TEST_P(FaultTest, ACallThatFailsEndsInItsErrorAndLeavesNothing) {
  const std::vector<at::Tensor> expected = gradients(run(), std::nullopt);
  int failed = 0;
  for (const Policy& policy : hazard_policies()) {
    SCOPED_TRACE(policy.name + ": " + describe(policy));
    expect_equal(gradients(run(), policy), expected);
    const Leftovers before = leftovers();
    int call = 0;
    do {
      SCOPED_TRACE("call " + std::to_string(++call));
      failing_->fail_at(call);
      std::vector<at::Tensor> actual;
      const std::string message = message_of([&] { actual = gradients(run(), policy); });
      if (!actual.empty()) expect_equal(actual, expected);
      if (actual.empty()) {
        EXPECT_THAT(message, HasSubstr(FailingDevice::kMessage));
      }
      actual.clear();
      clear_ready_queue();
      ASSERT_EQ(leftovers(), before);
    } while (failing_->has_failed());
    failing_->fail_at(0);
    failed += call - 1;
    expect_equal(gradients(run(), policy), expected);
  }
  EXPECT_GT(failed, 50);
}

INSTANTIATE_TEST_SUITE_P(, FaultTest,
                         testing::Combine(testing::ValuesIn(devices_under_test()),
                                          testing::ValuesIn(small_scenarios())),
                         [](const auto& test) {
                           return std::get<1>(test.param).name + "_" + std::get<0>(test.param);
                         });

}  // namespace
}  // namespace offprof
