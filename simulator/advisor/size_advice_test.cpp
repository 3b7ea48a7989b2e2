#include "simulator/advisor/size_advice.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>

#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Records a model that saves 8 tensors of 100 bytes for each sample. With parameters on the host 4000 of
/// 5000 resident bytes are gone, and a sample takes 300 ns in place of 100. Nothing else can be configured.
class FakeRecorder : public SizedStepRecorder {
 public:
  std::vector<RecordedStep> existing() override { return {}; }
  bool configures_model() const override { return true; }
  bool configures_allocator() const override { return false; }
  std::int64_t present_size() const override { return 4; }
  std::size_t runs_at_once() const override { return 2; }

  std::vector<RecordedStep> record(const std::vector<Configuration>& configurations) override {
    std::vector<RecordedStep> steps;
    for (const Configuration& configuration : configurations) {
      EXPECT_EQ(std::ranges::count(recorded_, configuration), 0);
      recorded_.push_back(configuration);
      const std::int64_t size = configuration.size.value_or(4);
      if (configuration.slices || size > largest_recorded_)
        steps.push_back({configuration, nullptr, "not supported", {}});
      else
        steps.push_back({configuration,
                         std::make_shared<Trace>(trace(size, configuration.parameters.has_value())),
                         {},
                         {}});
    }
    return steps;
  }

  std::optional<Metrics> confirm(const Way& way) override {
    confirmed_ = way.configuration;
    return way.predicted;
  }

  std::int64_t largest_recorded_ = 1'000'000;
  std::int64_t smallest_full_size_ = 1;  ///< smaller steps take as long
  std::vector<Configuration> recorded_;
  std::optional<Configuration> confirmed_;

 private:
  Trace trace(std::int64_t size, bool has_few_residents) const {
    ProgramSketch sketch(has_few_residents ? 1000 : 5000);
    std::vector<SavedId> tensors;
    sketch.phase("forward");
    for (int layer = 0; layer < 8; ++layer) {
      const std::int32_t storage = sketch.alloc(100 * size);
      tensors.push_back(sketch.save(storage));
      sketch.free(storage);
      sketch.compute((has_few_residents ? 300 : 100) * std::max(size, smallest_full_size_) / 10);
      sketch.node_end();
    }
    sketch.phase("backward");
    for (auto tensor = tensors.rbegin(); tensor != tensors.rend(); ++tensor) sketch.node(*tensor);
    sketch.backward_end();
    Trace trace = sample_trace();
    trace.environment.link = {{1e9, 0}, {1e9, 0}};
    trace.program = sketch.program();
    return trace;
  }
};

SizeAdvice advise_within(FakeRecorder& recorder, Bytes budget, std::optional<double> max_slowdown = {}) {
  AdviceRequest request;
  request.memory_budget_bytes = budget;
  request.max_slowdown = max_slowdown;
  request.threads = 1;
  return advise_size(recorder, request, [](const std::string&) {});
}

const SizedWay& way_named(const SizeAdvice& advice, const std::string& name) {
  return *std::ranges::find(advice.ways, name, [](const SizedWay& way) { return way.way.name; });
}

TEST(AdviseSize, FindsTheLargestSizeOfEachWay) {
  FakeRecorder recorder;
  const SizeAdvice advice = advise_within(recorder, 21'000);
  EXPECT_EQ(advice.present, 4);
  EXPECT_EQ(way_named(advice, "keep everything").size, 20);
  EXPECT_EQ(way_named(advice, "parameters on the host").size, 25);
  EXPECT_GE(advice.ways.front().size, 100);
  EXPECT_TRUE(std::ranges::is_sorted(advice.ways, std::ranges::greater(), &SizedWay::size));
  ASSERT_TRUE(recorder.confirmed_);
  EXPECT_EQ(recorder.confirmed_, advice.ways.front().way.configuration);
  EXPECT_EQ(recorder.confirmed_->size, advice.ways.front().size);
}

TEST(AdviseSize, ChecksTheSizeAndTheNextOne) {
  FakeRecorder recorder;
  const SizeAdvice advice = advise_within(recorder, 21'000);
  for (const SizedWay& way : advice.ways) {
    EXPECT_LE(device_bytes_taken(way.way.predicted), 21'000) << way.way.name;
    Configuration next = way.way.configuration;
    next.size = way.size + 1;
    EXPECT_THAT(recorder.recorded_, testing::Contains(next)) << way.way.name;
  }
}

TEST(AdviseSize, LimitsTheTimeOfASample) {
  FakeRecorder recorder;
  const SizeAdvice advice = advise_within(recorder, 21'000, 0.0);
  EXPECT_EQ(way_named(advice, "keep everything").size, 20);
  EXPECT_EQ(way_named(advice, "parameters on the host").size, 0);
}

TEST(AdviseSize, DoesNotEndAtStepsThatAreTooSmallForTheDevice) {
  FakeRecorder recorder;
  recorder.smallest_full_size_ = 4;
  const SizeAdvice advice = advise_within(recorder, 21'000, 0.0);
  EXPECT_EQ(way_named(advice, "keep everything").size, 20);
  EXPECT_GE(advice.ways.front().size, 20);
}

TEST(AdviseSize, ShowsTheLargestThatFitsIfItIsTooSlow) {
  FakeRecorder recorder;
  const SizeAdvice advice = advise_within(recorder, 21'000, 0.0);
  const SizedWay& slow = way_named(advice, "parameters on the host");
  EXPECT_EQ(slow.size, 0);
  EXPECT_EQ(slow.way_size, 25);
  EXPECT_EQ(slow.way.configuration.size, 25);
}

TEST(AdviseSize, SaysIfLargerStepsCannotBeRecorded) {
  FakeRecorder recorder;
  recorder.largest_recorded_ = 10;
  const SizeAdvice advice = advise_within(recorder, 21'000);
  EXPECT_EQ(way_named(advice, "keep everything").size, 10);
  EXPECT_TRUE(way_named(advice, "keep everything").is_limited_by_recording);
}

TEST(AdviseSize, FindsNoneIfNotEvenOneFits) {
  FakeRecorder recorder;
  const SizeAdvice advice = advise_within(recorder, 500);
  EXPECT_EQ(advice.ways.front().size, 0);
  EXPECT_FALSE(recorder.confirmed_);
}

}  // namespace
}  // namespace offprof
