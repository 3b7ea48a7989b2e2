// Tests of side effects of checkpointed submodules (module_scenarios.h), apart from gradients, on every
// device.
#include <ATen/Context.h>
#include <gmock/gmock.h>

#include "engine/checkpointing/checkpointed_modules.h"
#include "tests/hazards/hazard_fixture.h"
#include "tests/hazards/module_scenarios.h"

namespace offprof {
namespace {

using torch::jit::Module;

class CheckpointingHazards : public HazardTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override {
    open(GetParam());
    if (IsSkipped()) return;
    model_ = model_for_checkpointing(device().torch_device());
    checkpointed_.emplace(model_, std::vector<std::string>{"*"}, device().torch_device());
  }
  void TearDown() override {
    checkpointed_.reset();
    model_ = Module("None");
    HazardTest::TearDown();
  }

  std::vector<at::Tensor> gradients_under(const std::optional<Policy>& policy) {
    return gradients([&](Graph& g) { model_.forward({g.x, g.w}).toTensor().backward(); }, policy);
  }
  std::vector<at::Tensor> plain_gradients() {
    const CheckpointedModules::Off off(*checkpointed_);
    return gradients_under(std::nullopt);
  }
  /// Returns the number of batches that each layer has counted.
  double batches() {
    double count = 0;
    for (const char* name : {"first", "last"})
      count += model_.attr(name).toModule().attr("count").toTensor().item<double>();
    return count / 2;
  }

  Module model_{"None"};
  std::optional<CheckpointedModules> checkpointed_;
};

TEST_P(CheckpointingHazards, CountEachBatchOnce) {
  const double before = batches();
  gradients_under(hazard_policies().front());
  EXPECT_EQ(batches(), before + (has_values() ? 1 : 0));
}

/// The random numbers of the CPU are compared in engine/checkpointing/checkpointing_test.cpp.
class CheckpointingHazardsOfGpus : public CheckpointingHazards {};

TEST_P(CheckpointingHazardsOfGpus, LeaveTheDevicesGeneratorInTheStateOfPlainAutograd) {
  const c10::Device torch_device = device().torch_device();
  const auto offset = [&] { return at::globalContext().defaultGenerator(torch_device).get_offset(); };
  plain_gradients();
  const std::uint64_t expected = offset();
  EXPECT_GT(expected, 0U);
  gradients_under(hazard_policies().front());
  EXPECT_EQ(offset(), expected);
}

INSTANTIATE_TEST_SUITE_P(, CheckpointingHazards, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param; });
INSTANTIATE_TEST_SUITE_P(, CheckpointingHazardsOfGpus, testing::ValuesIn(gpus_under_test()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace offprof
