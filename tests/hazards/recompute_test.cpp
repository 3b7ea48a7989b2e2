// Tests of recompute: each step recomputes all tensors that can be, whatever else it does with autograd.
#include <ATen/Context.h>

#include <algorithm>
#include <map>
#include <string>
#include <utility>

#include "engine/scheduler/recompute_rules.h"
#include "profiler/recorder/recompute_recorder.h"
#include "tests/hazards/hazard_fixture.h"
#include "tests/hazards/scenarios.h"
#include "tests/support/command_lists.h"

namespace offprof {
namespace {

using testing::HasSubstr;

/// Passes events on, and records the saved tensors as a step program would.
class NotedStep final : public StepListener {
 public:
  NotedStep(Device& device, const Residents& residents) : recorder_(device, residents) {}

  void on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
               const PackDecision& decision) override {
    recorder_.on_pack(tensor, value, request, decision);
    SavedTensor& saved = program_.saved.emplace_back();
    const auto [storage, is_new] =
        storages_.try_emplace(request.storage, static_cast<std::int32_t>(storages_.size()));
    saved.storage = storage->second;
    saved.version = request.version;
    saved.movability = request.movability;
  }
  void on_backward_begin(const StepCopies& copies) override { recorder_.on_backward_begin(copies); }

  RecomputeRecorder& recorder() { return recorder_; }
  const StepProgram& program() const { return program_; }

 private:
  RecomputeRecorder recorder_;
  StepProgram program_;
  std::map<std::int64_t, std::int32_t> storages_;
};

/// Runs steps on one graph, whose leaves are the parameters.
class RecomputeFixture : public HazardTest {
 protected:
  void begin() {
    at::manual_seed(kSeed);
    graph_.emplace(device().torch_device());
    residents_ = std::make_shared<Residents>();
    for (const at::Tensor& leaf : {graph_->x, graph_->w}) {
      residents_->roles[*device().allocation_of(leaf.storage())] = StorageRole::kParameter;
      residents_->parameters.insert(leaf.unsafeGetTensorImpl());
    }
  }
  void TearDown() override {
    recomputations_.clear();
    program_ = {};
    graph_.reset();
    HazardTest::TearDown();
  }

  void run_graph(const Run& run) {
    at::manual_seed(kSeed);
    graph_->alive.clear();
    for (at::Tensor* leaf : {&graph_->x, &graph_->w}) leaf->mutable_grad() = at::Tensor();
    run(*graph_);
    graph_->alive.clear();
  }
  std::vector<at::Tensor> gradients_now() const { return {graph_->x.grad(), graph_->w.grad()}; }

  /// Finds the recomputations as a run does.
  void find_recomputations(const Run& run) {
    std::vector<std::vector<FoundRecomputation>> found;
    for (int i = 0; i < 2; ++i) {
      NotedStep noted(device(), *residents_);
      auto step =
          std::make_shared<OffloadStep>(device(), preset_policy("keep"), StepGuide(), residents_, &noted);
      {
        const CurrentStep current(step);
        run_graph(run);
        step->backward_end();
      }
      step->stop_listening();
      found.push_back(noted.recorder().take());
      program_ = noted.program();
    }
    program_.recomputations.emplace();
    for (FoundRecomputation& one : agreed(std::move(found[0]), found[1])) {
      recomputations_.emplace(one.recomputation.tensor,
                              std::make_shared<const ExecutableRecomputation>(one.executable));
      program_.recomputations->push_back(one.recomputation);
    }
  }

  /// Runs a step that recomputes all tensors that have a recomputation; `others` is the place of the rest.
  std::shared_ptr<OffloadStep> step_with_recomputations(const Run& run, Place others, Bytes prefetch) {
    StepGuide guide;
    for (const SavedTensor& saved : program_.saved)
      guide.placements.push_back(saved.movability == Movability::kMovable
                                     ? RuledPlacement(ResolvedPlacement{Place::kRecompute})
                                     : std::nullopt);
    settle_recomputations(program_, {}, guide.placements);
    for (RuledPlacement& placement : guide.placements)
      if (placement && placement->place != Place::kRecompute) placement = ResolvedPlacement{others};
    guide.recomputations = recomputations_;
    Policy policy = preset_policy("keep");
    policy.prefetch_bytes = prefetch;
    auto step = std::make_shared<OffloadStep>(device(), policy, guide, residents_, nullptr);
    const CurrentStep current(step);
    run_graph(run);
    step->backward_end();
    return step;
  }

  static std::ptrdiff_t recomputed_in(const OffloadStep& step) {
    return count_of<Recompute>(step.commands());
  }

  std::vector<std::string> operators() const {
    std::vector<std::string> names;
    for (const Recomputation& recomputation : *program_.recomputations) names.push_back(recomputation.op);
    return names;
  }
  at::TensorOptions options() { return at::TensorOptions(device().torch_device()); }

  /// Returns the offset of a GPU's default generator, which counts its draws; 0 for a CPU.
  std::uint64_t generator_offset() {
    const c10::Device here = device().torch_device();
    return here.is_cpu() ? 0 : at::globalContext().defaultGenerator(here).get_offset();
  }

  std::optional<Graph> graph_;
  std::shared_ptr<Residents> residents_;
  StepProgram program_;
  std::unordered_map<SavedId, std::shared_ptr<const ExecutableRecomputation>> recomputations_;
};

class RecomputeScenarioTest : public RecomputeFixture,
                              public testing::WithParamInterface<std::tuple<std::string, Scenario>> {
 protected:
  void SetUp() override { open(std::get<0>(GetParam())); }
};

TEST_P(RecomputeScenarioTest, HasTheGradientsOfPlainAutogradAndLeavesNothing) {
  const Scenario& scenario = std::get<1>(GetParam());
  begin();
  run_graph(scenario.plainly());
  const std::vector<at::Tensor> expected = gradients_now();
  find_recomputations(scenario.run);
  for (const Place others : {Place::kDevice, Place::kHost, Place::kDisk})
    for (const Bytes prefetch : {0, 1000})
      expect_nothing_left([&] {
        const auto step = step_with_recomputations(scenario.run, others, prefetch);
        EXPECT_EQ(recomputed_in(*step) > 0, scenario.can_recompute)
            << recomputed_in(*step) << " tensors were recomputed";
        expect_equal(gradients_now(), expected);
      });
}

/// Returns the scenarios in which threads do not save tensors at once: otherwise two steps may save in
/// different orders.
std::vector<Scenario> ordered_scenarios() {
  std::vector<Scenario> scenarios = all_scenarios();
  std::erase_if(scenarios, [](const Scenario& scenario) { return scenario.has_threads; });
  return scenarios;
}

INSTANTIATE_TEST_SUITE_P(, RecomputeScenarioTest,
                         testing::Combine(testing::ValuesIn(devices_under_test()),
                                          testing::ValuesIn(ordered_scenarios())),
                         [](const auto& test) {
                           return std::get<1>(test.param).name + "_" + std::get<0>(test.param);
                         });

class RecomputeTest : public RecomputeFixture, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { open(GetParam()); }
};

TEST_P(RecomputeTest, RecomputesAChainFromItsBeginning) {
  begin();
  const Run run = [](Graph& g) { at::gelu(at::silu(at::gelu(g.x.mm(g.w)))).pow(3).sum().backward(); };
  run_graph(run);
  const std::vector<at::Tensor> expected = gradients_now();
  find_recomputations(run);
  const auto step = step_with_recomputations(run, Place::kHost, 0);
  EXPECT_EQ(program_.recomputations->size(), 3U);
  EXPECT_EQ(recomputed_in(*step), 3);
  EXPECT_EQ(count_of<CopyIn>(step->commands()), 1);
  expect_equal(gradients_now(), expected);
}

TEST_P(RecomputeTest, RecomputesAResultOfAnOperatorWithSeveralResults) {
  begin();
  const Run run = [](Graph& g) { at::layer_norm(g.x.exp(), {8}).mm(g.w).sum().backward(); };
  run_graph(run);
  const std::vector<at::Tensor> expected = gradients_now();
  find_recomputations(run);
  EXPECT_GT(recomputed_in(*step_with_recomputations(run, Place::kDevice, 0)), 0);
  expect_equal(gradients_now(), expected);
}

TEST_P(RecomputeTest, ATensorChangedInPlaceLaterIsNoSource) {
  begin();
  const Run run = [](Graph& g) {
    Tensor h = g.x.mm(g.w);
    g.alive.push_back(h.pow(2));  // saves the tensor that sigmoid_ overwrites; backward never unpacks it
    const Tensor y = at::silu(h.detach()) * g.x.sum();
    h.sigmoid_();
    (y.sum() + h.sum()).backward();
  };
  find_recomputations(run);
  for (const Recomputation& recomputation : *program_.recomputations)
    EXPECT_NE(recomputation.op, "aten::silu");
}

/// The intermediate results of these operators are not saved.
TEST_P(RecomputeTest, RecomputesThroughSeveralOperators) {
  begin();
  const Run run = [](Graph& g) {
    const Tensor h = g.x.exp();
    (h.detach().pow(2).mean({-1}, true).add(1e-6).rsqrt() * h).mm(g.w).sum().backward();
  };
  run_graph(run);
  const std::vector<at::Tensor> expected = gradients_now();
  find_recomputations(run);
  EXPECT_THAT(operators(), testing::Contains("aten::pow, aten::mean, aten::add, aten::rsqrt"));
  for (const Place others : {Place::kDevice, Place::kHost}) {
    EXPECT_GT(recomputed_in(*step_with_recomputations(run, others, 0)), 0);
    expect_equal(gradients_now(), expected);
  }
}

/// The mask is recomputed from the generator's old state. The generator then continues as if nothing had been
/// drawn again.
TEST_P(RecomputeTest, RecomputesDropoutFromTheSameRandomNumbers) {
  begin();
  const Run run = [](Graph& g) {
    const Tensor h = at::dropout(g.x.exp(), 0.3, true).mm(g.w);
    at::dropout(at::dropout(h, 0.5, true).exp(), 0.1, true).sum().backward();
  };
  run_graph(run);
  const std::vector<at::Tensor> expected = gradients_now();
  const std::uint64_t offset = generator_offset();
  const at::Tensor next = at::rand({4}, options());
  find_recomputations(run);
  EXPECT_GE(std::ranges::count_if(operators(),
                                  [](const std::string& name) {
                                    return name.find("aten::bernoulli_") != std::string::npos ||
                                           name.find("aten::native_dropout") != std::string::npos;
                                  }),
            3)
      << testing::PrintToString(operators());
  for (const Place others : {Place::kDevice, Place::kHost})
    expect_nothing_left([&] {
      EXPECT_GE(recomputed_in(*step_with_recomputations(run, others, 0)), 3);
      expect_equal(gradients_now(), expected);
      EXPECT_EQ(generator_offset(), offset);
      expect_equal({at::rand({4}, options())}, {next});
    });
}

TEST_P(RecomputeTest, AStepThatDrawsOtherNumbersThanTheRecordedOneIsAnError) {
  begin();
  bool draws_more = false;
  const Run run = [&](Graph& g) {
    if (draws_more) at::rand({4}, options());
    at::dropout(g.x.exp(), 0.3, true).mm(g.w).sum().backward();
  };
  find_recomputations(run);
  ASSERT_GT(recomputed_in(*step_with_recomputations(run, Place::kDevice, 0)), 0);
  draws_more = true;
  expect_nothing_left([&] {
    EXPECT_THAT(message_of([&] { step_with_recomputations(run, Place::kDevice, 0); }),
                HasSubstr("this step drew different random numbers than the recorded step"));
  });
}

/// Batch norm changes its running statistics without telling autograd.
TEST_P(RecomputeTest, ATensorChangedWithoutAutogradIsNoSource) {
  begin();
  const Run run = [](Graph& g) {
    const Tensor mean = at::zeros({8}, g.x.options().requires_grad(false)), variance = at::ones_like(mean);
    const Tensor h = at::batch_norm(g.x.exp(), {}, {}, mean, variance, /*training=*/true, 0.1, 1e-5, false);
    (h.sum() + (g.x.exp() * mean.exp()).sum()).backward();
  };
  run_graph(run);
  const std::vector<at::Tensor> expected = gradients_now();
  find_recomputations(run);
  step_with_recomputations(run, Place::kHost, 0);
  expect_equal(gradients_now(), expected);
}

/// One operator allocates memory and a kernel of another writes to it: the first did not compute those
/// values. Also, old memory may contain the expected values by chance.
TEST_P(RecomputeTest, DoesNotRecomputeFromUninitialisedMemory) {
  begin();
  const Run run = [](Graph& g) {
    const Tensor h = at::batch_norm(g.x.exp(), {}, {}, {}, {}, /*training=*/true, 0.1, 1e-5, false);
    (g.w.exp() * h.sum() + at::empty_like(g.w).add(1).mul(0)).sum().backward();
  };
  find_recomputations(run);
  for (const std::string& name : operators()) EXPECT_THAT(name, testing::Not(HasSubstr("empty")));
}

/// `max_unpool2d` sets its result to zero with an operator, then writes to it in its own kernel.
TEST_P(RecomputeTest, DoesNotRecomputeAKernelsOutputWithTheOperatorThatAllocatedIt) {
  begin();
  const Run run = [](Graph& g) {
    const at::TensorOptions plain = g.x.options().requires_grad(false);
    const Tensor pooled = at::full({1, 1, 2, 2}, 0.5, plain),
                 places = at::zeros({1, 1, 2, 2}, plain.dtype(at::kLong));
    (g.x.exp().sum() * at::max_unpool2d(pooled, places, {4, 4})).sum().backward();
  };
  find_recomputations(run);
  for (const std::string& name : operators()) EXPECT_THAT(name, testing::Not(HasSubstr("zero_")));
}

/// Two operators take one tensor, and one of them changes it. Whichever ran first, the other one would not
/// find its input. (On a device with values, the check of values would fail as well.)
TEST_P(RecomputeTest, DoesNotRecomputeFromATensorThatIsChangedLater) {
  begin();
  const Run run = [](Graph& g) {
    const Tensor h = g.x.detach() + 1;
    const Tensor sum = h.sum();
    (g.x.exp() * (h.mul_(3) * sum)).sum().backward();
  };
  find_recomputations(run);
  for (const std::string& name : operators()) EXPECT_THAT(name, testing::Not(HasSubstr("mul_")));
}

/// LibTorch notifies each of its listeners, so a nested step must not be notified twice.
TEST_P(RecomputeTest, ANestedStepCountsItsDrawsOnce) {
  begin();
  const Run run = [](Graph& g) { at::dropout(g.x.exp(), 0.3, true).mm(g.w).sum().backward(); };
  run_graph(run);
  const std::vector<at::Tensor> expected = gradients_now();
  find_recomputations(run);
  bool is_within = false;
  step_with_recomputations(
      [&](Graph& g) {
        if (!is_within) {
          is_within = true;
          EXPECT_GT(recomputed_in(*step_with_recomputations(run, Place::kDevice, 0)), 0);
          expect_equal(gradients_now(), expected);
        }
        g.alive.clear();
      },
      Place::kDevice, 0);
  EXPECT_TRUE(is_within);
}

/// The model has its own generator, whose state nobody records.
TEST_P(RecomputeTest, DoesNotRecomputeDrawsOfAnotherGenerator) {
  begin();
  at::Generator generator = at::globalContext().defaultGenerator(device().torch_device()).clone();
  const Run run = [&](Graph& g) {
    const Tensor noise = at::empty_like(g.x).bernoulli_(0.5, generator);
    (g.x.exp() * noise).sum().backward();
  };
  find_recomputations(run);
  for (const std::string& name : operators()) EXPECT_THAT(name, testing::Not(HasSubstr("bernoulli")));
}

/// A recomputation must change only its own memory: the mask before the change is saved too.
TEST_P(RecomputeTest, DoesNotRepeatAnInPlaceChangeOnASavedTensor) {
  begin();
  const Run run = [](Graph& g) {
    const Tensor noise = at::empty_like(g.x).bernoulli_(0.5);
    const Tensor sum = (g.x.exp() * noise).sum();
    const Tensor larger = noise.clone().mul_(3);
    (sum + (g.x.exp() * larger).sum()).backward();
  };
  run_graph(run);
  const std::vector<at::Tensor> expected = gradients_now();
  find_recomputations(run);
  EXPECT_THAT(operators(), testing::Contains("aten::clone, aten::mul_"));
  for (const Place others : {Place::kDevice, Place::kHost}) {
    step_with_recomputations(run, others, 0);
    expect_equal(gradients_now(), expected);
  }
}

/// Plain autograd would not report this, because the source is not unpacked.
TEST_P(RecomputeTest, ASourceChangedInPlaceIsAnError) {
  begin();
  bool edits = false;
  const Run run = [&](Graph& g) {
    const Tensor h = g.x * 2;
    g.alive.push_back(h.sin());  // saves h, and backward never unpacks it
    const Tensor loss = (at::silu(h.detach()) * g.x).sum();
    if (edits) h.detach().add_(1);
    loss.backward();
  };
  find_recomputations(run);
  ASSERT_GT(recomputed_in(*step_with_recomputations(run, Place::kDevice, 0)), 0);
  edits = true;
  expect_nothing_left([&] {
    EXPECT_THAT(message_of([&] { step_with_recomputations(run, Place::kDevice, 0); }),
                HasSubstr("cannot be recomputed by aten::"));
    graph_->alive.clear();
  });
}

TEST_P(RecomputeTest, AParameterChangedInPlaceIsAnError) {
  begin();
  bool edits = false;
  const Run run = [&](Graph& g) {
    const Tensor loss = (at::silu(g.x.detach()) * g.w.t()).sum();
    if (edits) {
      const at::NoGradGuard no_grad;
      g.x.add_(1);
    }
    loss.backward();
  };
  find_recomputations(run);
  ASSERT_GT(recomputed_in(*step_with_recomputations(run, Place::kDevice, 0)), 0);
  edits = true;
  EXPECT_THAT(message_of([&] { step_with_recomputations(run, Place::kDevice, 0); }),
              HasSubstr("cannot be recomputed by aten::silu"));
}

INSTANTIATE_TEST_SUITE_P(, RecomputeTest, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace offprof
