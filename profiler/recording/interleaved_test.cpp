#include "profiler/recording/interleaved.h"

#include <gmock/gmock.h>

#include <map>
#include <set>
#include <string>
#include <utility>

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::HasSubstr;

constexpr Nanoseconds kNear = 60, kFar = 330;
constexpr Nanoseconds kPatience = 10'000'000'000;

/// Steps under `keep` take 10, others 20, and ten times as long if the cores are far apart. The first visit
/// takes the most memory.
class FakeJob {
 public:
  ComparisonResult measure(const Comparison& comparison) {
    ComparisonResult result;
    for (const ComparedPolicy& compared : comparison.policies)
      result.runs.emplace_back().policy = compared.policy;
    measure_interleaved(
        {[this](const Policy& policy, int steps) { return train(policy, steps); },
         [this] { return core_to_core(); }, [this](const std::string& doing) { progress.push_back(doing); }},
        comparison, result);
    return result;
  }

  /// Distance of the cores from some check on, by the number of the check; near before that.
  std::map<int, Nanoseconds> moves;
  std::optional<Nanoseconds> apart = kNear;
  std::vector<std::pair<std::string, int>> visits;
  std::string too_large;  ///< name of a policy that the device has no memory for
  int fails_at = 1;       ///< number of its visit that fails
  /// Numbers of visits, from 0: in the first one all steps have other commands, in the second one only the
  /// last step.
  std::optional<std::size_t> other_commands_in_visit, last_step_differs_in_visit;
  std::vector<std::string> progress;

 private:
  VisitResult train(const Policy& policy, int steps) {
    visits.emplace_back(policy.name, steps);
    if (policy.name == too_large && ++attempts_ == fails_at) return {{}, "out of device memory"};
    StepResult step;
    step.step_time_ns = (policy.threshold_bytes ? 20 : 10) * (apart == kFar ? 10 : 1);
    step.device_peak_bytes = visits.size() == 1 ? 200 : 100;
    const std::size_t visit = visits.size() - 1;
    if (visit != other_commands_in_visit) step.commands = {CopyOut{{0, 0, 8}}};
    std::vector<StepResult> results(static_cast<std::size_t>(steps), step);
    results.back().has_other_commands = visit == last_step_differs_in_visit;
    return {results};
  }

  std::optional<Nanoseconds> core_to_core() {
    if (const auto move = moves.find(looks_++); move != moves.end()) apart = move->second;
    return apart;
  }

  int looks_ = 0, attempts_ = 0;
};

Comparison comparison() {
  Comparison comparison;
  comparison.policies = {{preset_policy("keep"), 3, 2}, {preset_policy("offload"), 1, 1}};
  comparison.rounds = 4;
  comparison.core_to_core_ns = kNear;
  comparison.patience_ns = kPatience;
  return comparison;
}

TEST(Interleaved, EveryRoundMakesEveryVisit) {
  FakeJob job;
  const ComparisonResult result = job.measure(comparison());
  EXPECT_THAT(result.runs[0].step_times_ns, ElementsAre(10, 10, 10, 10, 10, 10, 10, 10));
  EXPECT_THAT(result.runs[1].step_times_ns, ElementsAre(20, 20, 20, 20));
  EXPECT_EQ(result.runs[1].measured.step_time_ns, 20);
  ASSERT_EQ(job.visits.size(), 12u);
  for (std::size_t round = 0; round < 4; ++round) {
    const std::multiset<std::pair<std::string, int>> visits(
        job.visits.begin() + static_cast<std::ptrdiff_t>(3 * round),
        job.visits.begin() + static_cast<std::ptrdiff_t>(3 * round + 3));
    EXPECT_THAT(visits, ElementsAre(std::pair("keep", 4), std::pair("keep", 4), std::pair("offload", 2)));
  }
  EXPECT_EQ(result.repeated_visits, 0);
  EXPECT_EQ(result.displaced_visits, 0);
}

TEST(Interleaved, AVisitWaitsUntilTheCoresAreNear) {
  FakeJob job;
  job.apart = kFar;
  job.moves = {{3, kNear}};
  const ComparisonResult result = job.measure(comparison());
  EXPECT_THAT(result.runs[1].step_times_ns, ElementsAre(20, 20, 20, 20));
  EXPECT_EQ(job.visits.size(), 12u);
  EXPECT_EQ(result.repeated_visits, 0);
}

TEST(Interleaved, WaitingForTheCoresIsReportedAndLimited) {
  FakeJob job;
  job.apart = kFar;
  job.moves = {{1000, kNear}};  // later than any check
  Comparison hurried = comparison();
  hurried.patience_ns = 1;
  const ComparisonResult result = job.measure(hurried);
  EXPECT_THAT(job.progress, ElementsAre(HasSubstr("waiting until the cores")));
  EXPECT_EQ(result.displaced_visits, 12);
}

TEST(Interleaved, RepeatsAVisitIfTheCoresMoved) {
  FakeJob job;
  job.moves = {{1, kFar}, {3, kNear}};  // each visit checks before and after
  const ComparisonResult result = job.measure(comparison());
  EXPECT_EQ(result.repeated_visits, 1);
  EXPECT_EQ(result.displaced_visits, 0);
  EXPECT_EQ(job.visits.size(), 13u);
  EXPECT_EQ(result.runs[0].step_times_ns.size(), 8u);
  EXPECT_EQ(result.runs[1].step_times_ns.size(), 4u);
}

TEST(Interleaved, CountsStepsWithOtherCommandsThanTheFirst) {
  FakeJob job;
  EXPECT_EQ(job.measure(comparison()).runs[0].steps_with_other_commands, 0);
  FakeJob unsteady_visit;
  unsteady_visit.other_commands_in_visit = 5;
  FakeJob unsteady_step;
  unsteady_step.last_step_differs_in_visit = 5;
  const auto counted = [](FakeJob& of) {
    const ComparisonResult result = of.measure(comparison());
    return result.runs[0].steps_with_other_commands + result.runs[1].steps_with_other_commands;
  };
  const int steps_of_visit = counted(unsteady_visit);
  EXPECT_EQ(steps_of_visit, unsteady_visit.visits[5].second);
  EXPECT_EQ(counted(unsteady_step), 1);
}

TEST(Interleaved, CountsTheMemoryOfARepeatedVisit) {
  FakeJob job;
  job.moves = {{1, kFar}, {2, kNear}};
  const ComparisonResult result = job.measure(comparison());
  EXPECT_EQ(result.repeated_visits, 1);
  EXPECT_EQ(std::max(result.runs[0].measured.device_peak_bytes, result.runs[1].measured.device_peak_bytes),
            200);
}

TEST(Interleaved, CountsDisplacedVisitsWithoutPatience) {
  FakeJob job;
  job.apart = kFar;
  Comparison impatient = comparison();
  impatient.patience_ns = 0;
  const ComparisonResult result = job.measure(impatient);
  EXPECT_EQ(result.displaced_visits, 12);
  EXPECT_EQ(result.repeated_visits, 0);
  EXPECT_EQ(job.visits.size(), 12u);
}

TEST(Interleaved, DoesNotRevisitAPolicyThatRanOutOfMemory) {
  for (const int fails_at : {1, 2}) {
    FakeJob job;
    job.too_large = "offload";
    job.fails_at = fails_at;
    const ComparisonResult result = job.measure(comparison());
    EXPECT_EQ(result.runs[1].out_of_memory, "out of device memory");
    EXPECT_THAT(result.runs[1].step_times_ns, testing::IsEmpty());
    EXPECT_EQ(result.runs[1].measured, Metrics{});
    EXPECT_EQ(result.runs[0].step_times_ns.size(), 8u);
    EXPECT_EQ(job.visits.size(), 8u + static_cast<std::size_t>(fails_at));
  }
}

TEST(Interleaved, DoesNotWaitIfTheDistanceOfTheCoresIsUnknown) {
  FakeJob job;
  job.apart = kFar;
  Comparison unknown = comparison();
  unknown.core_to_core_ns = 0;
  EXPECT_EQ(job.measure(unknown).displaced_visits, 0);
  job.apart = std::nullopt;
  EXPECT_EQ(job.measure(comparison()).displaced_visits, 0);
}

}  // namespace
}  // namespace offprof
