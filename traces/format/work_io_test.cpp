#include "traces/format/work_io.h"

#include <gmock/gmock.h>

#include <nlohmann/json.hpp>

#include "tests/support/sample_program.h"
#include "tests/support/sample_trace.h"
#include "traces/base/error.h"
#include "traces/format/trace_io.h"

namespace offprof {
namespace {

using testing::HasSubstr;
using Kind = StreamCommand::Kind;

/// Returns a step in which the compute stream waits for a collective that waits for its own work.
Trace trace_with_commands() {
  Trace trace = modelled_sample_trace();
  const Work launch{3, 0, 3};
  trace.program.stream_commands = {
      {.kind = Kind::kRecord, .stream = 0, .point = 0, .event = 2, .before = {10, 50, 60, 40, 50}},
      {.kind = Kind::kWait, .stream = 2, .point = 0, .event = 2, .before = launch},
      {.kind = Kind::kCollective, .stream = 2, .duration_ns = 700, .event = 2, .before = launch},
      {.kind = Kind::kCopyOut, .stream = 0, .bytes = 70, .event = 3, .before = launch},
      {.kind = Kind::kCopyIn, .stream = 2, .bytes = 8, .event = 3, .before = launch},
      {.kind = Kind::kRecord, .stream = 2, .point = 1, .event = 3, .before = launch},
      {.kind = Kind::kWait, .stream = 0, .point = 1, .event = 4, .before = launch},
      {.kind = Kind::kHostWait, .stream = 0, .point = 1, .event = 4, .before = launch},
  };
  return trace;
}

TEST(StreamCommandsJson, ReadsBackItsOwnTrace) {
  const Trace trace = trace_with_commands();
  const StepProgram read = parse_trace(format_trace(trace), "t.json").program;
  EXPECT_EQ(read.stream_commands, trace.program.stream_commands);
  EXPECT_EQ(read.work, trace.program.work);
}

/// Returns the reader's error after a column has `value` at `index`.
std::string error_with(const std::string& column, std::size_t index, const nlohmann::json& value) {
  nlohmann::json document = nlohmann::json::parse(format_trace(trace_with_commands()));
  document["program"]["stream_commands"][column][index] = value;
  try {
    parse_trace(document.dump(), "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  return "no error";
}

/// Returns the same, in which the first activation is free once the collective is done.
Trace trace_with_free_point() {
  Trace trace = trace_with_commands();
  StepProgram& program = trace.program;
  for (std::size_t i = 0; i < program.events.size(); ++i) {
    if (program.events[i].kind != EventKind::kFree) continue;
    const std::int32_t storage = program.events[i].id;
    program.events.insert(program.events.begin() + static_cast<std::ptrdiff_t>(i),
                          {EventKind::kFreeRequested, storage, 0});
    program.work.insert(program.work.begin() + static_cast<std::ptrdiff_t>(i), Work{});
    program.free_points = {{storage, 1}};
    break;
  }
  return trace;
}

TEST(FreePointsJson, ReadsBackItsOwnTrace) {
  const Trace trace = trace_with_free_point();
  const StepProgram read = parse_trace(format_trace(trace), "t.json").program;
  ASSERT_EQ(read.free_points.size(), 1U);
  EXPECT_EQ(read.free_points, trace.program.free_points);
  EXPECT_EQ(read.events, trace.program.events);
}

TEST(FreePointsJson, RefusesPointsThatCannotBe) {
  const auto error_of = [](const char* column, std::int64_t value) -> std::string {
    nlohmann::json document = nlohmann::json::parse(format_trace(trace_with_free_point()));
    document["program"]["free_points"][column][0] = value;
    try {
      parse_trace(document.dump(), "t.json");
    } catch (const Error& error) {
      return error.what();
    }
    return "no error";
  };
  EXPECT_THAT(error_of("points", 2), HasSubstr("free_points[0]: point index 2 of 2"));
  EXPECT_THAT(error_of("storages", 0),
              HasSubstr("free_points[0]: is of a storage whose free is not requested"));
  EXPECT_THAT(error_of("storages", 99), HasSubstr("free_points[0]: storage index 99"));
}

/// Returns a trace of a step that frees a storage of the step before and leaves one of its own.
Trace trace_with_renewal() {
  ProgramSketch sketch(100);
  const std::int32_t old_storage = sketch.resident(100);
  const std::int32_t left = sketch.alloc(100), freed = sketch.alloc(50);
  sketch.save(left);
  sketch.free(old_storage);
  sketch.free(freed);
  Trace trace = sample_trace();
  trace.program = sketch.program();
  trace.program.renewals = {{old_storage, left, /*let_go=*/1}};
  return trace;
}

TEST(RenewalsJson, ReadsBackItsOwnTrace) {
  const Trace trace = trace_with_renewal();
  EXPECT_EQ(parse_trace(format_trace(trace), "t.json").program.renewals, trace.program.renewals);
}

TEST(RenewalsJson, RefusesRenewalsThatCannotBe) {
  const auto error_of = [](const nlohmann::json& old_storages, const nlohmann::json& new_storages,
                           const nlohmann::json& let_go = nullptr) {
    nlohmann::json document = nlohmann::json::parse(format_trace(trace_with_renewal()));
    nlohmann::json& renewals = document["program"]["renewals"];
    renewals = {{"old_storages", old_storages}, {"new_storages", new_storages}};
    if (!let_go.is_null()) renewals["let_go"] = let_go;
    try {
      parse_trace(document.dump(), "t.json");
    } catch (const Error& error) {
      return std::string(error.what());
    }
    return std::string("no error");
  };
  EXPECT_EQ(error_of({0}, {1}), "no error");
  EXPECT_THAT(error_of({3}, {1}), HasSubstr("renewals[0]: old storage index 3 of 3"));
  EXPECT_THAT(error_of({0}, {3}), HasSubstr("renewals[0]: new storage index 3 of 3"));
  EXPECT_THAT(error_of({2}, {1}), HasSubstr("renewals[0]: the old storage is not one that is older"));
  EXPECT_THAT(error_of({0}, {0}), HasSubstr("renewals[0]: the new storage is not one of the step"));
  EXPECT_THAT(error_of({0}, {2}), HasSubstr("renewals[0]: the new storage differs in its size"));
  EXPECT_THAT(error_of({0, 0}, {1, 1}), HasSubstr("renewals[1]: old storages must be in ascending order"));
  EXPECT_THAT(error_of({0}, {1, 2}), HasSubstr("new_storages"));
  EXPECT_EQ(error_of({0}, {1}, {3}), "no error");
  EXPECT_THAT(error_of({0}, {1}, {4}), HasSubstr("renewals[0]: let_go is beyond the event that frees"));
  EXPECT_THAT(error_of({0}, {1}, {99}), HasSubstr("renewals[0]: let_go: event index 99 of 5"));
}

TEST(StreamCommandsJson, RefusesCommandsThatCannotBe) {
  EXPECT_THAT(error_with("events", 7, 3), HasSubstr("stream_commands[7]: is of an earlier event"));
  EXPECT_THAT(error_with("events", 7, 1000), HasSubstr("stream_commands[7]: event with work index 1000 of"));
  EXPECT_THAT(error_with("streams", 2, 0), HasSubstr("stream_commands[2]: runs on the compute stream"));
  EXPECT_THAT(error_with("streams", 2, -1), HasSubstr("streams"));
  EXPECT_THAT(error_with("points", 5, 2), HasSubstr("stream_commands[5]: points must be numbered"));
  EXPECT_THAT(error_with("points", 1, 1), HasSubstr("stream_commands[1]: point index 1 of 1"));
  EXPECT_THAT(error_with("duration_ns", 2, std::int64_t{1} << 60),
              HasSubstr("the sum of duration_ns exceeds"));
  EXPECT_THAT(error_with("bytes", 3, std::int64_t{1} << 60), HasSubstr("the sum of bytes of copies exceeds"));
  EXPECT_THAT(error_with("host_ns", 8, 1), HasSubstr("has 9 elements"));
}

}  // namespace
}  // namespace offprof
