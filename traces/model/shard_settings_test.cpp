// Layer slices in traces and figures.

#include "traces/model/shard_settings.h"

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

Trace sharded(std::int64_t count, std::int64_t microbatches) {
  Trace trace = sample_trace();
  trace.settings.shards = {count, microbatches};
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

TEST(ShardsInTraces, ReadsBackTheSettings) {
  const Trace trace = sharded(4, 2);
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").settings, trace.settings);
}

TEST(ShardsInTraces, RejectsInvalidNumbers) {
  EXPECT_THAT(error_of(sharded(0, 1)), HasSubstr("shards.count"));
  EXPECT_THAT(error_of(sharded(1, -1)), HasSubstr("shards.microbatches"));
}

TEST(ShardsInTraces, DescribesTheSettingsInWords) {
  EXPECT_EQ(describe(std::optional<ShardSettings>()), "none");
  EXPECT_EQ(describe(ShardSettings{1, 1}), "1 shard, 1 micro-batch");
  EXPECT_EQ(describe(ShardSettings{4, 2}), "4 shards, 2 micro-batches");
}

TEST(ShardsInFigures, ListsThemInRunDifferences) {
  const auto differences =
      run_differences(figures_of(sample_trace(), "a.json"), figures_of(sharded(4, 2), "b.json"));
  ASSERT_EQ(differences.size(), 1U);
  EXPECT_EQ(differences[0].what, "shards");
  EXPECT_EQ(differences[0].now, "4 shards, 2 micro-batches");
}

TEST(ShardsInFigures, ChangeTheFingerprintOfTheRun) {
  const Trace plain = sample_trace(), trace = sharded(4, 2);
  EXPECT_NE(fingerprint_of_run(trace.model, trace.settings), fingerprint_of_run(plain.model, plain.settings));
}

}  // namespace
}  // namespace offprof
