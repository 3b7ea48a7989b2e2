#include "simulator/advisor/advise.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::ElementsAre;
using testing::Field;
using testing::IsEmpty;
using testing::SizeIs;

constexpr std::size_t kModules = 8;
constexpr Bytes kSave = 1000;
constexpr Bytes kResident = 1000;

/// Records a model of 8 modules `layers.0` to `layers.7`, each of which saves two tensors of 1000 bytes. A
/// checkpointed module saves one of them and takes 100 ns more. The link is so slow that offloading never
/// pays. 1000 bytes are resident, so that a step takes 17 000 bytes and 2400 ns, and with k modules
/// checkpointed 17 000 - 1000 k bytes and 2400 + 100 k ns.
class FakeRecorder : public StepRecorder {
 public:
  std::vector<RecordedStep> existing() override { return existing_; }
  bool configures_model() const override { return true; }
  bool configures_allocator() const override { return expanded_excess_.has_value(); }

  std::vector<RecordedStep> record(const std::vector<Configuration>& configurations) override {
    std::vector<RecordedStep> steps;
    for (const Configuration& configuration : configurations) {
      recorded_.push_back(configuration);
      if (configuration.parameters || configuration == failing_)
        steps.push_back({configuration, nullptr, "not supported", {}});
      else
        steps.push_back(
            step(configuration, configuration.expands_segments ? expanded_excess_.value_or(0) : 0));
    }
    return steps;
  }

  std::optional<Metrics> confirm(const Way& way) override {
    confirmed_.push_back(way.name);
    Metrics metrics = way.predicted;
    *metrics.device_peak_bytes += confirmed_.size() == 1 ? measured_excess_ : 0;
    return metrics;
  }

  static RecordedStep step(const Configuration& configuration, Bytes excess = 0) {
    return {configuration, std::make_shared<Trace>(trace(configuration, kResident + excess)), {}, {}};
  }

  std::vector<RecordedStep> existing_;
  std::optional<Configuration> failing_;
  /// Bytes that a step takes more with expandable segments; nullopt: the allocator cannot be configured.
  std::optional<Bytes> expanded_excess_;
  Bytes measured_excess_ = 0;  ///< of the first confirmed way
  std::vector<Configuration> recorded_;
  std::vector<std::string> confirmed_;

 private:
  static std::string path(std::size_t module) { return "layers." + std::to_string(module); }

  static bool is_checkpointed(const Configuration& configuration, std::size_t module) {
    return std::ranges::any_of(configuration.checkpointed, [&](const std::string& pattern) {
      return pattern == "layers.*" || pattern == path(module);
    });
  }

  static Trace trace(const Configuration& configuration, Bytes resident) {
    ProgramSketch sketch(resident);
    std::vector<std::vector<SavedId>> tensors(kModules);
    sketch.phase("forward");
    for (std::size_t module = 0; module < kModules; ++module) {
      for (int save = is_checkpointed(configuration, module) ? 1 : 0; save < 2; ++save) {
        const std::int32_t storage = sketch.alloc(kSave);
        tensors[module].push_back(sketch.save(storage));
        sketch.free(storage);
      }
      sketch.compute(100);
      sketch.node_end();
    }
    sketch.phase("backward");
    for (std::size_t module = kModules; module-- > 0;) {
      sketch.compute(is_checkpointed(configuration, module) ? 300 : 200);
      for (auto tensor = tensors[module].rbegin(); tensor != tensors[module].rend(); ++tensor)
        sketch.node(*tensor);
    }
    sketch.backward_end();
    Trace trace = sample_trace();
    trace.environment.link = {{1, 0}, {1, 0}};
    trace.program = sketch.program();
    for (std::size_t module = 0; module < kModules; ++module) {
      trace.program.names.push_back(path(module));
      for (const SavedId tensor : tensors[module])
        trace.program.saved[static_cast<std::size_t>(tensor)].module =
            static_cast<std::int32_t>(trace.program.names.size() - 1);
    }
    for (SavedTensor& saved : trace.program.saved) saved.layout = TensorLayout{"uint8", {kSave}, {1}};
    return trace;
  }
};

TEST(Advise, ForLeastMemoryAlsoCheckpointsWithParametersOnTheHost) {
  FakeRecorder recorder;
  AdviceRequest request;
  request.objective = Objective::kMemory;
  request.threads = 1;
  const Advice advice = advise(recorder, request, [](const std::string&) {});
  EXPECT_TRUE(advice.recommended().is_within);
  EXPECT_THAT(recorder.recorded_, Contains(Configuration{.checkpointed = {"layers.*"},
                                                         .parameters = ParameterSettings{"host", {}}}));
}

Advice advise_within(FakeRecorder& recorder, Bytes budget) {
  AdviceRequest request;
  request.memory_budget_bytes = budget;
  request.threads = 1;
  return advise(recorder, request, [](const std::string&) {});
}

TEST(Advise, RecommendsNothingIfTheStepFits) {
  FakeRecorder recorder;
  const Advice advice = advise_within(recorder, 17'000);
  EXPECT_TRUE(advice.does_nothing);
  EXPECT_EQ(advice.recommended().name, "keep everything");
  EXPECT_EQ(advice.nothing.predicted.device_peak_bytes, 17'000);
  EXPECT_EQ(advice.nothing.predicted.step_time_ns, 2400);
  EXPECT_THAT(recorder.recorded_, ElementsAre(Configuration{}));
}

TEST(Advise, TakesTheAllocatorSettingWithWhichAStepTakesLess) {
  for (const Bytes excess : {-1000, 0, 1000}) {
    SCOPED_TRACE(excess);
    FakeRecorder recorder;
    recorder.expanded_excess_ = excess;
    const Advice advice = advise_within(recorder, 12'000);
    EXPECT_TRUE(advice.recommended().is_within);
    EXPECT_EQ(advice.recommended().configuration.expands_segments, excess <= 0);
    EXPECT_THAT(advice.ways, Contains(Field(&Way::name, "expandable segments")));
  }
}

TEST(Advise, RecommendsTheFewestCheckpointedModulesThatFit) {
  for (Bytes budget = 9000; budget < 17'000; budget += 3000) {
    SCOPED_TRACE(budget);
    FakeRecorder recorder;
    const Advice advice = advise_within(recorder, budget);
    const Bytes count = (17'000 - budget) / 1000;
    EXPECT_TRUE(advice.recommended().is_within);
    EXPECT_EQ(advice.recommended().predicted.device_peak_bytes, budget);
    EXPECT_EQ(advice.recommended().predicted.step_time_ns, 2400 + 100 * count);
  }
}

TEST(Advise, NamesTheCheckpointedModules) {
  FakeRecorder recorder;
  const Advice advice = advise_within(recorder, 13'500);
  EXPECT_EQ(advice.recommended().name, "checkpoint 4 of 8 layers.*");
  EXPECT_THAT(advice.recommended().configuration.checkpointed,
              ElementsAre("layers.0", "layers.2", "layers.4", "layers.6"));
  EXPECT_THAT(advice.ways, Contains(Field(&Way::name, "checkpoint the first 4 of 8 layers.*")));
  EXPECT_THAT(advice.ways, Contains(Field(&Way::name, "checkpoint all 8 layers.*")));
}

TEST(Advise, RecordsNoConfigurationTwice) {
  for (Bytes budget = 9000; budget < 17'000; budget += 1000) {
    SCOPED_TRACE(budget);
    FakeRecorder recorder;
    advise_within(recorder, budget);
    for (const Configuration& configuration : recorder.recorded_)
      EXPECT_EQ(std::ranges::count(recorder.recorded_, configuration), 1);
  }
}

TEST(Advise, ListsNoWayTwice) {
  FakeRecorder recorder;
  const Advice advice = advise_within(recorder, 13'500);
  for (const Way& way : advice.ways)
    EXPECT_EQ(std::ranges::count_if(advice.ways,
                                    [&](const Way& other) {
                                      return other.name == way.name &&
                                             other.configuration == way.configuration;
                                    }),
              1)
        << way.name;
}

TEST(Advise, ListsTheConfigurationsThatCannotBeRecorded) {
  FakeRecorder recorder;
  const Advice advice = advise_within(recorder, 13'500);
  ASSERT_THAT(advice.unrecorded, SizeIs(2));
  EXPECT_EQ(advice.unrecorded[0].configuration.parameters->place, "host");
  EXPECT_EQ(advice.unrecorded[1].reason, "not supported");
}

TEST(Advise, SearchesOnWithoutACountThatCannotBeRecorded) {
  FakeRecorder recorder;
  recorder.failing_ = Configuration{.checkpointed = {"layers.0", "layers.2", "layers.4", "layers.6"}};
  EXPECT_EQ(advise_within(recorder, 13'500).recommended().name, "checkpoint the first 4 of 8 layers.*");
}

TEST(Advise, RefusesAStepThatCannotBeRecorded) {
  FakeRecorder recorder;
  recorder.failing_ = Configuration{};
  try {
    advise_within(recorder, 13'500);
    FAIL();
  } catch (const Error& error) {
    EXPECT_STREQ(error.what(), "the step cannot be recorded: not supported");
  }
}

TEST(Advise, RecommendsTheNextWayIfTheBestMeasuresMore) {
  FakeRecorder recorder;
  recorder.measured_excess_ = 10'000;
  const Advice advice = advise_within(recorder, 13'500);
  ASSERT_THAT(recorder.confirmed_, SizeIs(2));
  EXPECT_EQ(advice.recommended().name, recorder.confirmed_[1]);
  EXPECT_TRUE(advice.recommended().is_within);
}

TEST(Advise, GivesTheNearestWayIfNoneFits) {
  FakeRecorder recorder;
  const Advice advice = advise_within(recorder, 500);
  EXPECT_FALSE(advice.recommended().is_within);
  EXPECT_THAT(recorder.confirmed_, IsEmpty());
}

TEST(Advise, ComparesExistingTracesWithoutRecording) {
  FakeRecorder recorder;
  recorder.existing_ = {FakeRecorder::step({}), FakeRecorder::step({.checkpointed = {"layers.*"}})};
  recorder.existing_[1].name = "--checkpoint 'layers.*'";
  const Advice advice = advise_within(recorder, 9500);
  EXPECT_THAT(recorder.recorded_, IsEmpty());
  EXPECT_EQ(advice.recommended().name, "--checkpoint 'layers.*'");
  EXPECT_EQ(advice.recommended().predicted.device_peak_bytes, 9000);
}

TEST(Advise, GivesTheFingerprintOfTheSavedTensorsOfEachConfiguration) {
  FakeRecorder recorder;
  const Advice advice = advise_within(recorder, 13'500);
  const auto fingerprint = [](const Configuration& configuration) {
    return fingerprint_of_saved(FakeRecorder::step(configuration).trace->program.saved);
  };
  EXPECT_EQ(advice.nothing.saved_fingerprint, fingerprint({}));
  EXPECT_EQ(advice.recommended().saved_fingerprint, fingerprint(advice.recommended().configuration));
  EXPECT_NE(advice.recommended().saved_fingerprint, advice.nothing.saved_fingerprint);
}

}  // namespace
}  // namespace offprof
