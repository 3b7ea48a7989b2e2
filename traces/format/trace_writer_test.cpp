#include <gmock/gmock.h>

#include <filesystem>
#include <nlohmann/json.hpp>
#include <sstream>

#include "tests/support/sample_trace.h"
#include "tests/support/test_folder.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using nlohmann::json;
using ::testing::ElementsAre;
using ::testing::HasSubstr;

json written(const Trace& trace) {
  return json::parse(format_trace(trace));
}

/// Returns the events whose `key` has this value.
std::vector<json> events_with(const json& document, const std::string& key, const json& value) {
  std::vector<json> events;
  for (const json& event : document.at("traceEvents")) {
    if (event.contains(key) && event.at(key) == value) events.push_back(event);
  }
  return events;
}

json event_named(const json& document, const std::string& name) {
  const auto events = events_with(document, "name", name);
  return events.size() == 1 ? events.front() : json();
}

std::string line_with(const std::string& text, const std::string& part) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    if (line.find(part) != std::string::npos) return line;
  }
  return "";
}

std::vector<std::string> top_level_keys(const std::string& text) {
  std::vector<std::string> keys;
  const auto document = nlohmann::ordered_json::parse(text);
  for (const auto& [key, value] : document.items()) keys.push_back(key);
  return keys;
}

TEST(FormatTrace, PutsTheSchemaFirstAndTheEventsLast) {
  const auto keys = top_level_keys(format_trace(sample_trace()));
  EXPECT_EQ(keys.front(), "schema");
  EXPECT_EQ(keys.back(), "traceEvents");
}

TEST(FormatTrace, CallsTheFiguresOfARunMeasured) {
  const json document = written(sample_trace());
  EXPECT_EQ(document.at("measured").at("device_peak_bytes"), 4192);
  EXPECT_FALSE(document.contains("predicted"));
  EXPECT_EQ(document.at("simulated"), false);
}

TEST(FormatTrace, MarksASimulation) {
  Trace trace = sample_trace();
  trace.simulated = true;
  const json document = written(trace);
  EXPECT_EQ(document.at("simulated"), true);
  EXPECT_TRUE(document.contains("predicted"));
  EXPECT_FALSE(document.contains("measured"));
  for (const json& event : events_with(document, "name", "process_name")) {
    EXPECT_THAT(event.at("args").at("name").get<std::string>(), HasSubstr("(simulated)"));
  }
}

TEST(FormatTrace, MentionsModelledTimesOnlyIfThereAreSome) {
  EXPECT_FALSE(written(sample_trace()).at("environment").contains("times_are_modelled"));
  Trace trace = virtual_sample_trace();
  EXPECT_EQ(written(trace).at("environment").at("times_are_modelled"), true);
  EXPECT_FALSE(written(trace).at("environment").contains("kernel_times"));
  trace.environment.kernel_times = "h200.json";
  EXPECT_EQ(written(trace).at("environment").at("kernel_times"), "h200.json");
}

TEST(FormatTrace, WritesTheRankInTheFormOfHolisticTraceAnalysis) {
  EXPECT_THAT(line_with(format_trace(sample_trace()), "distributedInfo"), HasSubstr("\"rank\": 0"));
}

TEST(FormatTrace, WritesOneEventPerLine) {
  const std::string text = format_trace(sample_trace());
  std::istringstream lines(text.substr(text.find("\"traceEvents\"")));
  std::string line;
  std::getline(lines, line);
  while (std::getline(lines, line) && line != "]}") {
    if (line.back() == ',') line.pop_back();
    EXPECT_TRUE(json::parse(line).is_object()) << line;
  }
  EXPECT_EQ(line, "]}");
}

TEST(FormatTrace, WritesMicrosecondsWithNanosecondPrecision) {
  EXPECT_THAT(line_with(format_trace(sample_trace()), "\"aten::relu\",\"ts\""),
              HasSubstr("\"ts\":0.500,\"dur\":1.600"));
}

TEST(FormatTrace, PutsParentsBeforeChildren) {
  std::vector<std::string> names;
  for (const json& event : events_with(written(sample_trace()), "tid", 1)) {
    if (event.at("ph") == "X") names.push_back(event.at("name"));
  }
  EXPECT_THAT(names, ElementsAre("ProfilerStep#0", "forward", "aten::relu", "backward", "ReluBackward0",
                                 "wait for copy in"));
}

TEST(FormatTrace, KeepsTheOrderOfOperatorsWithTheSameStart) {
  Trace trace = sample_trace();
  trace.timeline.spans = {{Track::kCompute, SpanKind::kOp, "view", 5, 0, 0, -1, ""},
                          {Track::kCompute, SpanKind::kOp, "linear", 5, 9, 0, -1, ""},
                          {Track::kCompute, SpanKind::kOp, "t", 5, 0, 0, -1, "", {}, true},
                          {Track::kCompute, SpanKind::kPhase, "forward", 5, 9, 0, -1, ""}};
  const json document = written(trace);
  std::vector<std::string> names;
  for (const json& event : events_with(document, "ph", "X")) names.push_back(event.at("name"));
  EXPECT_THAT(names, ElementsAre("forward", "view", "linear", "t"));
  EXPECT_EQ(event_named(document, "t").at("args"), (json{{"nested", true}}));
  EXPECT_FALSE(event_named(document, "view").contains("args"));
}

TEST(FormatTrace, SeparatesOperatorsFromAnnotations) {
  const json document = written(sample_trace());
  EXPECT_EQ(events_with(document, "cat", "cpu_op").size(), 2);
  EXPECT_EQ(event_named(document, "ProfilerStep#0").at("cat"), "user_annotation");
  EXPECT_EQ(event_named(document, "backward").at("cat"), "user_annotation");
}

TEST(FormatTrace, WritesReasonAndTensorOfAWait) {
  const json args = event_named(written(sample_trace()), "wait for copy in").at("args");
  EXPECT_EQ(args, (json{{"reason", "reload"}, {"direction", "h2d"}, {"tensor", 0}, {"op", "aten::relu"}}));
}

TEST(FormatTrace, NamesTheModuleAndTheSourceLineOfACopiedTensor) {
  Trace trace = sample_trace();
  trace.program.names.insert(trace.program.names.end(), {"layers.0", "train.py:12"});
  trace.program.saved[0].module = 4;
  trace.program.saved[0].line = 5;
  for (const char* copy : {"Memcpy DtoH (Device -> Host)", "Memcpy HtoD (Host -> Device)"}) {
    const json args = event_named(written(trace), copy).at("args");
    EXPECT_EQ(args.at("module"), "layers.0");
    EXPECT_EQ(args.at("line"), "train.py:12");
  }
}

TEST(FormatTrace, PutsEachDirectionOnItsStream) {
  const json document = written(sample_trace());
  const json out = event_named(document, "Memcpy DtoH (Device -> Host)");
  const json in = event_named(document, "Memcpy HtoD (Host -> Device)");
  EXPECT_EQ(out.at("cat"), "gpu_memcpy");
  EXPECT_EQ(out.at("tid"), out.at("args").at("stream"));
  EXPECT_EQ(in.at("tid"), in.at("args").at("stream"));
  EXPECT_NE(out.at("tid"), in.at("tid"));
}

TEST(FormatTrace, GivesBytesBandwidthAndTensorOfACopy) {
  const json args = event_named(written(sample_trace()), "Memcpy DtoH (Device -> Host)").at("args");
  EXPECT_EQ(args.at("bytes"), 4096);
  EXPECT_EQ(args.at("tensor"), 0);
  EXPECT_DOUBLE_EQ(args.at("memory bandwidth (GB/s)"), 2.0);
}

TEST(FormatTrace, CorrelatesEveryCopyWithAHostEvent) {
  const json document = written(sample_trace());
  std::vector<int> of_copies;
  std::vector<int> of_host;
  for (const json& event : events_with(document, "ph", "X")) {
    const json args = event.value("args", json::object());
    if (args.contains("correlation")) {
      (args.contains("stream") ? of_copies : of_host).push_back(args.at("correlation"));
    }
  }
  EXPECT_THAT(of_copies, ElementsAre(1, 2));
  EXPECT_EQ(of_host, of_copies);
}

TEST(FormatTrace, LeavesOutTheBandwidthOfACopyWithoutDuration) {
  Trace trace = sample_trace();
  for (Span& span : trace.timeline.spans) span.duration_ns = 0;
  const json args = event_named(written(trace), "Memcpy DtoH (Device -> Host)").at("args");
  EXPECT_FALSE(args.contains("memory bandwidth (GB/s)"));
}

TEST(FormatTrace, DrawsAnArrowThroughThePointsOfAFlow) {
  const auto arrow = events_with(written(sample_trace()), "cat", "offload");
  std::string phases;
  std::vector<std::string> points;
  for (const json& event : arrow) {
    phases += event.at("ph").get<std::string>();
    points.push_back(event.at("args").at("point"));
    EXPECT_EQ(event.at("id"), 7);
  }
  EXPECT_EQ(phases, "sttf");
  EXPECT_THAT(points, ElementsAre("pack", "copy out", "copy in", "unpack"));
}

TEST(FormatTrace, LeavesOutArrowsWithASinglePoint) {
  Trace trace = sample_trace();
  trace.timeline.flows.resize(1);
  EXPECT_TRUE(events_with(written(trace), "cat", "offload").empty());
}

TEST(FormatTrace, WritesCountersWhenTheyChange) {
  std::vector<std::int64_t> values;
  for (const json& event : events_with(written(sample_trace()), "ph", "C")) {
    values.push_back(event.at("args").at("bytes"));
  }
  EXPECT_THAT(values, ElementsAre(96, 4192));
}

TEST(FormatTrace, WritesAllocatorEventsLikePyTorchsProfiler) {
  const auto events = events_with(written(sample_trace()), "name", "[memory]");
  ASSERT_EQ(events.size(), 2U);
  EXPECT_EQ(events[0].at("ph"), "i");
  EXPECT_EQ(events[0].at("cat"), "cpu_instant_event");
  EXPECT_EQ(events[0].at("args"), json::parse(R"({"Device Type": 0, "Device Id": -1, "Addr": 2, "Bytes": 4096,
      "Total Allocated": 4192, "Total Reserved": 0, "stack": "forward;aten::relu"})"));
  EXPECT_EQ(events[1].at("args").at("Bytes"), -4096);
}

TEST(FormatTrace, WritesTheMemoryOfAGpu) {
  const auto events = events_with(written(virtual_sample_trace()), "name", "[memory]");
  EXPECT_EQ(events.at(0).at("args").at("Device Type"), 1);
  EXPECT_EQ(events.at(0).at("args").at("Device Id"), 0);
}

TEST(FormatTrace, EscapesNames) {
  Trace trace = sample_trace();
  trace.timeline.spans = {{Track::kCompute, SpanKind::kOp, "a\"b\\c\n\x01\xc3\xa9", 0, 1, 0, -1, ""}};
  EXPECT_EQ(events_with(written(trace), "cat", "cpu_op").at(0).at("name"), "a\"b\\c\n\x01\xc3\xa9");
}

TEST(FormatTrace, ReplacesBytesThatAreNotUtf8) {
  Trace trace = sample_trace();
  trace.model.name = "mod\xff.pt";
  EXPECT_EQ(written(trace).at("model").at("name"), "mod\xef\xbf\xbd.pt");
}

TEST(FormatTrace, KeepsAStepOf20000EventsSmall) {
  Trace trace = sample_trace();
  for (int i = 0; i < 20'000; ++i) trace.program.events.push_back({EventKind::kPhase, i % 4, 1'000'000 + i});
  EXPECT_LT(format_trace(trace).size(), 400'000);
}

TEST(FormatTrace, GivesTheSameTextEachTime) {
  EXPECT_EQ(format_trace(sample_trace()), format_trace(sample_trace()));
}

TEST(WriteTrace, CompressesIfTheNameEndsInGz) {
  const TestFolder folder;
  const std::string path = folder / "trace.json.gz";
  write_trace(path, sample_trace());
  EXPECT_LT(std::filesystem::file_size(path), format_trace(sample_trace()).size());
  EXPECT_EQ(read_file(path), format_trace(sample_trace()));
}

}  // namespace
}  // namespace offprof
