#include "profiler/cupti/step_tracing.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <optional>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

/// A tracer that refuses to begin, or returns the activity that a test sets.
class FakeTracer final : public GpuTracer {
 public:
  explicit FakeTracer(std::optional<GpuActivity> activity) : activity_(std::move(activity)) {}
  TracerInfo info() const override { return {"a tool", "1.2", 4096}; }
  void begin(TraceDetail) override {
    if (!activity_) throw environment_error("this GPU cannot be traced", "take another");
  }
  void drain() override {}
  GpuActivity end() override { return *activity_; }
  void push(std::uint64_t) override {}
  void pop() override {}

 private:
  std::optional<GpuActivity> activity_;
};

TEST(StepTracing, TracesNothingOnTheHostWithoutANote) {
  StepTracing tracing = StepTracing::of_device("host");
  EXPECT_EQ(tracing.begin(TraceDetail::kAll), nullptr);
  EXPECT_THAT(tracing.end().work, IsEmpty());
  EXPECT_FALSE(tracing.summary());
  EXPECT_THAT(tracing.take_notes(), IsEmpty());
}

TEST(StepTracing, ReportsWhyItCannotBeginAndContinuesWithoutTracing) {
  StepTracing tracing(std::make_unique<FakeTracer>(std::nullopt));
  EXPECT_EQ(tracing.begin(TraceDetail::kAll), nullptr);
  EXPECT_THAT(tracing.end().work, IsEmpty());
  EXPECT_EQ(tracing.begin(TraceDetail::kAll), nullptr);
  EXPECT_THAT(tracing.take_notes(),
              ElementsAre(AllOf(HasSubstr("no kernels"), HasSubstr("this GPU cannot be traced"),
                                HasSubstr("take another"))));
  EXPECT_THAT(tracing.take_notes(), IsEmpty());
}

TEST(StepTracing, CountsMissingRecordsOverAllSteps) {
  GpuActivity activity;
  activity.dropped_records = 3;
  activity.untimed_records = 1;
  StepTracing tracing(std::make_unique<FakeTracer>(activity));
  for (int step = 0; step < 2; ++step) {
    EXPECT_NE(tracing.begin(TraceDetail::kAll), nullptr);
    tracing.end();
  }
  ASSERT_TRUE(tracing.summary());
  EXPECT_EQ(tracing.summary()->tool, "a tool");
  EXPECT_EQ(tracing.summary()->version, "1.2");
  EXPECT_EQ(tracing.summary()->host_bytes, 4096);
  EXPECT_EQ(tracing.summary()->dropped_records, 6);
  EXPECT_EQ(tracing.summary()->untimed_records, 2);
  EXPECT_EQ(tracing.summary()->unreadable_buffers, 0);
}

}  // namespace
}  // namespace offprof
