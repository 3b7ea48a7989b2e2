// Layer slices in traces and figures.

#include "traces/model/slice_settings.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>

#include "tests/support/sample_trace.h"
#include "traces/analysis/figures.h"
#include "traces/analysis/fingerprint.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::HasSubstr;

Trace sliced(std::int64_t count, std::int64_t microbatches) {
  Trace trace = sample_trace();
  trace.settings.slices = {count, microbatches};
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

TEST(SlicesInTraces, ReadsBackTheSettings) {
  const Trace trace = sliced(4, 2);
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").settings, trace.settings);
}

TEST(SlicesInTraces, RejectsInvalidNumbers) {
  EXPECT_THAT(error_of(sliced(0, 1)), HasSubstr("slices.count"));
  EXPECT_THAT(error_of(sliced(1, -1)), HasSubstr("slices.microbatches"));
}

TEST(SlicesInTraces, DescribesTheSettingsInWords) {
  EXPECT_EQ(describe(std::optional<SliceSettings>()), "none");
  EXPECT_EQ(describe(SliceSettings{1, 1}), "1 slice, 1 micro-batch");
  EXPECT_EQ(describe(SliceSettings{4, 2}), "4 slices, 2 micro-batches");
}

TEST(SlicesInFigures, ListsThemInRunDifferences) {
  const auto differences =
      run_differences(figures_of(sample_trace(), "a.json"), figures_of(sliced(4, 2), "b.json"));
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].what, "slices");
  EXPECT_EQ(differences[0].now, "4 slices, 2 micro-batches");
}

TEST(SlicesInFigures, ChangeTheFingerprintOfTheRun) {
  const Trace plain = sample_trace(), trace = sliced(4, 2);
  EXPECT_NE(fingerprint_of_run(trace.model, trace.settings), fingerprint_of_run(plain.model, plain.settings));
}

}  // namespace
}  // namespace offprof
