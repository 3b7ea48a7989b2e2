#include <gmock/gmock.h>

#include <limits>
#include <nlohmann/json.hpp>
#include <string>

#include "tests/support/sample_trace.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Returns the error of reading the sample trace with `value` at `pointer`.
std::string error_with(const std::string& pointer, const json& value) {
  json document = json::parse(format_trace(sample_trace()));
  document[json::json_pointer(pointer)] = value;
  try {
    parse_trace(document.dump(), "t.json");
  } catch (const Error& error) {
    return error.what();
  }
  return "no error";
}

constexpr std::int64_t kEndless = 9'000'000'000'000'000'000;

TEST(TraceLimits, RequiresARateOfZeroOrBetweenAByteAndAnExabyte) {
  const std::string rate = "/environment/link/d2h/bytes_per_second";
  EXPECT_EQ(error_with(rate, 0), "no error");
  EXPECT_EQ(error_with(rate, 1), "no error");
  EXPECT_THAT(error_with(rate, 1e-300), HasSubstr("link.d2h.bytes_per_second: 1e-300 is not 0, nor between"));
  EXPECT_THAT(error_with(rate, 1e19), HasSubstr("1e+19"));
}

TEST(TraceLimits, LimitsTimesOfALinkToThirteenDays) {
  EXPECT_THAT(error_with("/environment/link/d2h/latency_ns", kEndless), HasSubstr("latency_ns"));
  EXPECT_THAT(error_with("/environment/link/h2d/start_ns", kEndless), HasSubstr("start_ns"));
  EXPECT_THAT(error_with("/environment/link/launch_ns", kEndless), HasSubstr("launch_ns"));
  EXPECT_EQ(error_with("/environment/link/launch_ns", 1LL << 50), "no error");
}

TEST(TraceLimits, LimitsCountsLikeRun) {
  EXPECT_THAT(error_with("/environment/threads", 1'000'000), HasSubstr("1000000 is not between 1 and 1024"));
  EXPECT_THAT(error_with("/environment/threads", 0), HasSubstr("environment.threads"));
  EXPECT_THAT(error_with("/settings/warmup", 2'147'483'647), HasSubstr("settings.warmup"));
  EXPECT_THAT(error_with("/settings/steps", 2'147'483'647), HasSubstr("settings.steps"));
}

TEST(TraceLimits, KeepsSumsFarBelow64Bits) {
  constexpr std::int64_t kMost = std::int64_t{1} << 59;
  EXPECT_THAT(error_with("/program/storages/bytes/0", std::numeric_limits<Bytes>::max()),
              HasSubstr("program.storages[0]: the sum of bytes exceeds 576460752303423488"));
  EXPECT_THAT(error_with("/program/storages/bytes/0", kMost),
              HasSubstr("program.storages[0]: the sum of bytes"));
  EXPECT_THAT(error_with("/program/events/compute_ns/1", kMost), HasSubstr("the sum of compute_ns exceeds"));
}

TEST(TraceLimits, KeepsTheSumsOfAReplayBelow64Bits) {
  constexpr std::int64_t kHalf = std::int64_t{1} << 58;
  EXPECT_THAT(error_with("/program/events/compute_spread_ns", json(std::vector<std::int64_t>(13, kHalf))),
              HasSubstr("the sum of compute_spread_ns exceeds"));
  Trace trace = sample_trace();
  trace.program.storages[2].bytes = kHalf;
  trace.program.saved.resize(3, trace.program.saved[0]);
  trace.program.events.insert(trace.program.events.begin() + 4,
                              {{EventKind::kPack, 1, 0}, {EventKind::kPack, 2, 0}});
  EXPECT_THROW(parse_trace(format_trace(trace), "t.json"), Error);
  trace.program.storages[2].bytes = 4096;
  EXPECT_NO_THROW(parse_trace(format_trace(trace), "t.json"));
}

}  // namespace
}  // namespace offprof
