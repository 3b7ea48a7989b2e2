#include "simulator/steps/modelled_time.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cmath>

#include "simulator/steps/time_factors.h"
#include "tests/support/sample_program.h"

namespace offprof {
namespace {

using testing::Field;
using testing::UnorderedElementsAre;

constexpr Nanoseconds kKernel = 1'000'000;
constexpr Nanoseconds kLaunch = 1'000;
constexpr int kLayers = 10;

/// Ten layers that save 1 MiB each, forward and backward. A kernel takes `kernel` and is launched in
/// `launch`.
StepProgram program_of(Nanoseconds kernel, Nanoseconds launch) {
  ProgramSketch sketch;
  for (int i = 0; i < kLayers; ++i) sketch.save(sketch.alloc(kMiB));
  for (SavedId tensor = kLayers; tensor-- > 0;) sketch.node(tensor);
  sketch.backward_end();
  StepProgram program = sketch.program();
  for (const Event& event : program.events) {
    const bool computes = event.kind == EventKind::kPack || event.kind == EventKind::kNodeEnd;
    program.work.push_back(computes ? Work{launch, kernel, launch + kernel, Work::kNoWait, kernel} : Work{});
  }
  program.families = {{"products", 2 * kLayers * kernel}};
  return program;
}

Trace trace_of(StepProgram program) {
  Trace trace;
  trace.program = std::move(program);
  trace.environment.times_are_modelled = true;
  trace.environment.link = {{1e9, 0}, {1e9, 0}};  // 1.05 ms a tensor
  return trace;
}

ModelledTime time_of(const Trace& trace, const char* policy = "keep", const std::optional<Link>& link = {}) {
  return *modelled_time(trace, TraceSteps(trace), preset_policy(policy),
                        link.value_or(trace.environment.link));
}

const TimeMove& move_of(const ModelledTime& time, const std::string& source) {
  return *std::ranges::find(time.moves, source, &TimeMove::source);
}

/// Whole nanoseconds of each kernel are rounded.
constexpr double kRounding = 100;

void expect_near(Nanoseconds time, double expected) {
  EXPECT_NEAR(static_cast<double>(time), expected, kRounding);
}

TEST(ModelledTime, KernelsOfOneFamilyAreOffTogether) {
  const Trace trace = trace_of(program_of(kKernel, kLaunch));
  const ModelledTime time = time_of(trace);
  const TimeFactors factors = kernel_factors("products");
  const double kernels = 2.0 * kLayers * kKernel;
  expect_near(move_of(time, "products").at_high_ns, (factors.high - 1) * kernels);
  expect_near(move_of(time, "products").at_low_ns, (factors.low - 1) * kernels);
  EXPECT_THAT(time.moves,
              UnorderedElementsAre(Field(&TimeMove::source, "products"), Field(&TimeMove::source, "host"),
                                   Field(&TimeMove::source, "copies")));
}

TEST(ModelledTime, FamiliesAreIndependent) {
  StepProgram program = program_of(kKernel, kLaunch);
  const Nanoseconds half = kLayers * kKernel;
  program.families = {{"products", half}, {"other", half}};
  const Trace trace = trace_of(program);
  const ModelledTime time = time_of(trace);
  const double products = (kernel_factors("products").high - 1) * static_cast<double>(half);
  const double other = (kernel_factors("other").high - 1) * static_cast<double>(half);
  const double host = static_cast<double>(move_of(time, "host").at_high_ns);
  expect_near(range_of(time).high_ns - time.step_ns, std::hypot(products, other, host));
}

TEST(ModelledTime, CollectivesOnAStreamOfTheirOwnAreOffOnTheirOwn) {
  using Kind = StreamCommand::Kind;
  StepProgram program = program_of(kKernel, kLaunch);
  const auto last = static_cast<std::int32_t>(program.events.size() - 1);
  const Nanoseconds duration = 100 * kKernel;  // longer than the step without it
  program.stream_commands = {{.kind = Kind::kCollective, .stream = 1, .duration_ns = duration},
                             {.kind = Kind::kRecord, .stream = 1, .point = 0},
                             {.kind = Kind::kWait, .stream = 0, .point = 0, .event = last}};
  const ModelledTime time = time_of(trace_of(program));
  EXPECT_EQ(time.step_ns, duration);
  expect_near(move_of(time, "collectives").at_high_ns,
              (kernel_factors("collectives").high - 1) * static_cast<double>(duration));
  EXPECT_EQ(move_of(time, "products").at_high_ns, 0);
}

TEST(ModelledTime, AStepThatWaitsForItsHostIsOffAsTheHost) {
  const Trace trace = trace_of(program_of(kLaunch, kKernel));
  const ModelledTime time = time_of(trace);
  expect_near(move_of(time, "host").at_high_ns, (host_factors().high - 1) * 2 * kLayers * kKernel);
  EXPECT_LT(move_of(time, "products").at_high_ns, kKernel);
}

TEST(ModelledTime, AScriptThatWaitsForItsHostIsOffAsPython) {
  Trace trace = trace_of(program_of(kLaunch, kKernel));
  trace.settings.loss = kOfScript;
  expect_near(move_of(time_of(trace), "host").at_low_ns,
              (python_host_factors().low - 1) * 2 * kLayers * kKernel);
}

TEST(ModelledTime, CopiesCountOnlyIfTheStepWaitsForThem) {
  const Trace trace = trace_of(program_of(kKernel, kLaunch));
  EXPECT_EQ(move_of(time_of(trace, "keep"), "copies").at_high_ns, 0);
  EXPECT_GT(move_of(time_of(trace, "offload"), "copies").at_high_ns, 0);
}

TEST(ModelledTime, CopiesOverAGivenLinkAreCertain) {
  const Trace trace = trace_of(program_of(kKernel, kLaunch));
  EXPECT_EQ(move_of(time_of(trace, "offload", Link{{5e8, 0}, {5e8, 0}}), "copies").at_high_ns, 0);
  Trace capped = trace;
  capped.settings.link_cap = trace.environment.link;
  EXPECT_EQ(move_of(time_of(capped, "offload"), "copies").at_high_ns, 0);
}

/// The time is that of a replay.
TEST(ModelledTime, TheRangeContainsTheModelledTime) {
  const Trace trace = trace_of(program_of(kKernel, kLaunch));
  for (const char* policy : {"keep", "offload", "trl"}) {
    const ModelledTime time = time_of(trace, policy);
    EXPECT_EQ(time.step_ns,
              TraceSteps(trace).predict(preset_policy(policy), trace.environment.link).step_time_ns);
    EXPECT_LT(range_of(time).low_ns, time.step_ns);
    EXPECT_GT(range_of(time).high_ns, time.step_ns);
  }
}

// --- Differences ---

TEST(ModelledTime, AWayDoesNotDifferFromItself) {
  const ModelledTime time = time_of(trace_of(program_of(kKernel, kLaunch)));
  EXPECT_EQ(difference_range(time, time), (TimeRange{0, 0}));
  EXPECT_TRUE(are_alike(time, time));
}

/// Two steps whose ranges overlap, of which one takes 5 % more of the same kernels.
TEST(ModelledTime, TheCommonErrorOfTwoWaysCancels) {
  const ModelledTime a = time_of(trace_of(program_of(kKernel, kLaunch)));
  const ModelledTime b = time_of(trace_of(program_of(kKernel * 21 / 20, kLaunch)));
  EXPECT_GT(range_of(a).high_ns, range_of(b).low_ns);
  EXPECT_FALSE(are_alike(a, b));
  EXPECT_FALSE(are_alike(b, a));
  EXPECT_GT(difference_range(a, b).low_ns, 0);
}

/// One way computes 1 ms more; the other waits about as long for copies.
TEST(ModelledTime, WaysThatCostDifferentThingsCanBeAlike) {
  const ModelledTime copies{30'000'000, {{"products", -2'000'000, 3'000'000}, {"copies", -100'000, 350'000}}};
  const ModelledTime compute{30'100'000, {{"products", -2'100'000, 3'150'000}, {"copies", 0, 0}}};
  EXPECT_TRUE(are_alike(copies, compute));
  const TimeRange range = difference_range(copies, compute);
  EXPECT_EQ(range.high_ns, 100'000 + std::llround(std::hypot(150'000.0, 100'000.0)));
  EXPECT_EQ(range.low_ns, 100'000 - std::llround(std::hypot(100'000.0, 350'000.0)));
}

TEST(ModelledTime, AFamilyOfOneWayAloneIsAnErrorOfTheDifference) {
  const ModelledTime a{1000, {}}, b{1100, {{"other", -50, 200}}};
  EXPECT_EQ(difference_range(a, b), (TimeRange{1050 - 1000, 1300 - 1000}));
  EXPECT_EQ(difference_range(b, a), (TimeRange{-300, -50}));
}

// --- When nothing is known ---

TEST(ModelledTime, MeasuredTimesAndOldTracesHaveNone) {
  Trace trace = trace_of(program_of(kKernel, kLaunch));
  const TraceSteps steps(trace);
  trace.environment.times_are_modelled = false;
  EXPECT_FALSE(modelled_time(trace, steps, preset_policy("keep"), trace.environment.link));
  trace.environment.times_are_modelled = true;
  trace.program.families.clear();
  EXPECT_FALSE(modelled_time(trace, steps, preset_policy("keep"), trace.environment.link));
}

// --- Factors ---

/// A family that was never compared is less certain than any that was.
TEST(TimeFactors, OtherKernelsAreTheLeastCertain) {
  const TimeFactors other = kernel_factors("other");
  for (const char* family : {"products", "row_operators", "elementwise", "attention"}) {
    const TimeFactors factors = kernel_factors(family);
    EXPECT_LT(factors.low, 1) << family;
    EXPECT_GT(factors.high, 1) << family;
    EXPECT_LT(other.low, factors.low) << family;
    EXPECT_GT(other.high, factors.high) << family;
  }
  EXPECT_EQ(kernel_factors("a family of a later version"), other);
}

}  // namespace
}  // namespace offprof
