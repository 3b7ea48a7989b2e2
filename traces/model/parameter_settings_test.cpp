// Parameter offload in traces and figures.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/sample_trace.h"
#include "traces/analysis/figures.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::HasSubstr;

/// Returns the sample trace with more events after the allocation of its storage.
Trace with(std::vector<Event> events) {
  Trace trace = sample_trace();
  trace.program.events.insert(trace.program.events.begin() + 3, events.begin(), events.end());
  return trace;
}

std::string error_of(const Trace& trace) {
  try {
    parse_trace(format_trace(trace), "t.json");
  } catch (const Error& error) {
    return error.what();
  }
  return {};
}

TEST(WeightsInTraces, ReadsBackSettingsAndCopies) {
  Trace trace = with({{EventKind::kFetch, 2, 1}, {EventKind::kFetched, 2, 2}, {EventKind::kSave, 2, 3}});
  trace.settings.parameters = {"disk", 4096};
  const Trace back = parse_trace(format_trace(trace), "t.json");
  EXPECT_EQ(back.settings, trace.settings);
  EXPECT_EQ(back.program, trace.program);
}

TEST(WeightsInTraces, RejectsAnUnknownPlace) {
  Trace trace = sample_trace();
  trace.settings.parameters = {"cloud"};
  EXPECT_THAT(error_of(trace), HasSubstr("parameters can be on the host or on the disk, not on 'cloud'"));
}

TEST(WeightsInTraces, RejectsAStorageThatIsNotAllocated) {
  EXPECT_THAT(error_of(with({{EventKind::kFetch, 0, 0}})),
              HasSubstr("parameters of a storage that does not exist"));
  EXPECT_THAT(error_of(with({{EventKind::kSave, 99, 0}})), HasSubstr("storage"));
}

TEST(WeightsInTraces, RejectsAWaitForACopyThatHasNotBegun) {
  EXPECT_THAT(error_of(with({{EventKind::kFetched, 2, 0}})), HasSubstr("a copy that has not begun"));
  EXPECT_THAT(error_of(with({{EventKind::kSave, 2, 0}, {EventKind::kFetched, 2, 0}})),
              HasSubstr("a copy that has not begun"));
}

TEST(WeightsInFigures, ListsThemInRunDifferences) {
  Trace trace = sample_trace();
  const StepSummary base = figures_of(trace, "a.json");
  trace.settings.parameters = {"host", 32 * kKiB};
  const auto differences = run_differences(base, figures_of(trace, "b.json"));
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].what, "parameters");
  EXPECT_EQ(differences[0].now, "on the host, at most 32.0 KiB on the device");
}

}  // namespace
}  // namespace offprof
