// Tests of parameter offload: leaves are on the device only while operators use them, in all autograd
// scenarios.
#include <gmock/gmock.h>

#include <tuple>

#include "engine/parameters/parameter_offloader.h"
#include "tests/hazards/fault_fixture.h"
#include "tests/hazards/scenarios.h"

namespace offprof {
namespace {

struct Offload {
  const char* name;
  std::unique_ptr<ParameterStore> (*make_store)(Device&);
  Bytes window_bytes = 0;
};
constexpr Offload kOffloads[] = {{"HostMemoryOneByOne", make_host_parameter_store, 0},
                                 {"HostMemory", make_host_parameter_store, 800},
                                 {"Disk", make_device_disk_parameter_store, 800}};

/// Graph whose leaves and their gradients are offloaded.
class OffloadedGraph {
 public:
  OffloadedGraph(Device& device, const Offload& offload)
      : device_(device),
        offloader_(device, offload.make_store(device), offload.window_bytes, /*least_bytes=*/1) {
    draw(graph_);
    drawn_version_ = graph_->x._version();
    for (const at::Tensor& leaf : leaves()) offloader_.adopt_parameter(leaf);
    residents_.is_parameter_group = [this](const c10::Storage& storage) {
      return offloader_.is_parameter_group(storage);
    };
    offloader_.end_step();
  }
  ~OffloadedGraph() { graph_->alive.clear(); }
  OffloadedGraph(const OffloadedGraph&) = delete;
  OffloadedGraph& operator=(const OffloadedGraph&) = delete;

  const Residents& residents() const { return residents_; }
  void learn() { offloader_.learn(); }

  /// Runs a step like a trainer, which writes to the leaves before and after it. Between steps the leaves are
  /// the negative of the drawn values, so that a lost write is noticed.
  template <typename Run>
  std::vector<at::Tensor> step(const Run& run) {
    end_step();  // of a step that failed
    std::optional<Graph> drawn;
    draw(drawn);  // so that later draws are the same as without parameter offload
    std::vector<at::Tensor> gradients;
    {
      const ParameterOffloader::Scope offloading(&offloader_);
      for (const at::Tensor& leaf : leaves()) set_negative(leaf, false);
      run(*graph_);
      const at::NoGradGuard no_grad;
      for (const at::Tensor& leaf : leaves()) {
        gradients.push_back(leaf.grad().defined() ? leaf.grad().clone() : at::Tensor());
        set_negative(leaf, true);
      }
    }
    end_step();
    return gradients;
  }

  /// Returns the present values of the leaves and their initial values.
  std::pair<std::vector<at::Tensor>, std::vector<at::Tensor>> values() {
    std::optional<Graph> drawn;
    draw(drawn);
    const ParameterOffloader::Scope offloading(&offloader_);
    for (const at::Tensor& leaf : leaves()) set_negative(leaf, false);
    const at::NoGradGuard no_grad;
    return {{graph_->x.clone(), graph_->w.clone()}, {drawn->x.detach(), drawn->w.detach()}};
  }

 private:
  void draw(std::optional<Graph>& graph) {
    at::manual_seed(7);
    graph.emplace(device_.torch_device());
  }
  std::vector<at::Tensor> leaves() const { return {graph_->x, graph_->w}; }
  /// Sets the sign of a leaf. Its version shows its present sign, even if a call failed after the last write.
  void set_negative(const at::Tensor& leaf, bool negative) const {
    const at::NoGradGuard no_grad;
    if (((leaf._version() - drawn_version_) % 2 == 1) != negative) leaf.neg_();
  }
  void end_step() {
    graph_->alive.clear();
    offloader_.forget_gradients();
    for (const at::Tensor& leaf : leaves()) leaf.mutable_grad() = at::Tensor();
    offloader_.end_step();
  }

  Device& device_;
  std::optional<Graph> graph_;
  std::int64_t drawn_version_ = 0;  ///< version of both leaves
  ParameterOffloader offloader_;
  Residents residents_;
};

class OffloadedParametersTest : public HazardTest,
                                public testing::WithParamInterface<std::tuple<std::string, Scenario>> {
 protected:
  void SetUp() override { open(std::get<0>(GetParam())); }
};

TEST_P(OffloadedParametersTest, HasTheGradientsOfPlainAutogradAndLeavesNothing) {
  const Scenario& scenario = std::get<1>(GetParam());
  const std::vector<at::Tensor> expected = gradients(scenario.plainly(), std::nullopt);
  for (const Policy& policy : policies_here()) {
    if (policy.scheduler == SchedulerKind::kTrl && scenario.asks_again) continue;
    for (const Offload& offload : kOffloads) {
      SCOPED_TRACE(policy.name + ": " + describe(policy) + ", " + offload.name);
      expect_nothing_left([&] {
        OffloadedGraph offloaded(device(), offload);
        for (int step = 0; step < 3; ++step) {
          expect_equal(offloaded.step([&](Graph& g) {
            run_step(
                policy, [&] { scenario.run(g); }, offloaded.residents());
          }),
                       expected);
          if (step == 0) offloaded.learn();
        }
        const auto [now, before] = offloaded.values();
        expect_equal(now, before);
      });
    }
  }
}

/// Scenarios that run on one thread. The deep graph differs from others in its depth alone, which parameter
/// offload does not depend on, and would take a minute under all policies.
std::vector<Scenario> parameter_offload_scenarios() {
  std::vector<Scenario> scenarios = all_scenarios();
  std::erase_if(scenarios, [](const Scenario& scenario) {
    return scenario.starts_threads || scenario.name == "DeepGraph";
  });
  return scenarios;
}

INSTANTIATE_TEST_SUITE_P(, OffloadedParametersTest,
                         testing::Combine(testing::ValuesIn(devices_under_test()),
                                          testing::ValuesIn(parameter_offload_scenarios())),
                         [](const auto& test) {
                           return std::get<1>(test.param).name + "_" + std::get<0>(test.param);
                         });

class OffloadedParametersFaultTest : public FaultFixture,
                                     public testing::WithParamInterface<std::tuple<std::string, Offload>> {
 protected:
  static void run(Graph& g) { graphs::shared_subgraph(g).backward(); }

  /// Runs a step whose parameters have already left the device. Then, whatever the outcome, runs another step
  /// on them.
  std::vector<at::Tensor> offloaded_step(const Policy& policy, const std::vector<at::Tensor>& expected) {
    std::optional<FaultyDevice::Pause> pause(std::in_place, faulty());
    OffloadedGraph offloaded(device(), std::get<1>(GetParam()));
    const auto step = [&] {
      return offloaded.step([&](Graph& g) {
        run_step(
            policy, [&] { run(g); }, offloaded.residents());
      });
    };
    expect_equal(step(), expected);
    offloaded.learn();
    pause.reset();
    std::vector<at::Tensor> actual;
    std::exception_ptr failure;
    try {
      actual = step();
    } catch (...) {
      failure = std::current_exception();
    }
    pause.emplace(faulty());
    expect_equal(step(), expected);
    const auto [now, before] = offloaded.values();
    expect_equal(now, before);
    if (failure) std::rethrow_exception(failure);
    return actual;
  }

  void expect_errors_or_gradients(bool and_all_after_it) {
    open_faulty<FailingDevice>(std::get<0>(GetParam()));
    if (IsSkipped()) return;
    const std::vector<at::Tensor> expected = gradients(run, std::nullopt);
    for (const Policy& policy : policies_here()) {
      SCOPED_TRACE(policy.name + ": " + describe(policy));
      for_every_call([&] { return offloaded_step(policy, expected); }, expected, and_all_after_it,
                     expect_planted_failure);
    }
    EXPECT_GT(failed(), 50);
  }
};

TEST_P(OffloadedParametersFaultTest, AFailedCallEndsWithItsErrorAndTheNextStepWorks) {
  expect_errors_or_gradients(/*and_all_after_it=*/false);
}

TEST_P(OffloadedParametersFaultTest, ATemporarilyLostDeviceLosesNoParameters) {
  expect_errors_or_gradients(/*and_all_after_it=*/true);
}

INSTANTIATE_TEST_SUITE_P(, OffloadedParametersFaultTest,
                         testing::Combine(testing::ValuesIn(devices_under_test()),
                                          testing::ValuesIn(kOffloads)),
                         [](const auto& test) {
                           return std::string(std::get<1>(test.param).name) + "_" + std::get<0>(test.param);
                         });

}  // namespace
}  // namespace offprof
