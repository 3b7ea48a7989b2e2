#include <gmock/gmock.h>

#include <filesystem>
#include <fstream>
#include <nlohmann/json.hpp>

#include "tests/support/sample_trace.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/format/program_io.h"
#include "traces/format/trace_io.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using nlohmann::json;
using ::testing::HasSubstr;

/// Returns the message of the Error that reading `text` throws, followed by `; ` and its hint.
std::string error_of(const std::string& text) {
  try {
    parse_trace(text, "t.json");
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what() + ("; " + error.hint());
  }
  return "no error";
}

/// Returns the error for the sample trace with `value` at `pointer`.
std::string error_with(const std::string& pointer, const json& value) {
  json document = json::parse(format_trace(sample_trace()));
  document[json::json_pointer(pointer)] = value;
  return error_of(document.dump());
}

std::string error_without(const std::string& key) {
  json document = json::parse(format_trace(sample_trace()));
  document.erase(key);
  return error_of(document.dump());
}

std::string error_of_program(const StepProgram& program) {
  Trace trace = sample_trace();
  trace.program = program;
  return error_of(format_trace(trace));
}

/// Returns the error for the sample trace with one event of its step program replaced.
std::string error_with_event(std::size_t index, Event event) {
  StepProgram program = sample_trace().program;
  program.events.at(index) = event;
  return error_of_program(program);
}

void expect_same(const Trace& a, const Trace& b) {
  EXPECT_EQ(a.tool_version, b.tool_version);
  EXPECT_EQ(a.argv, b.argv);
  EXPECT_EQ(a.simulated, b.simulated);
  EXPECT_EQ(a.environment, b.environment);
  EXPECT_EQ(a.model, b.model);
  EXPECT_EQ(a.settings, b.settings);
  EXPECT_EQ(a.step_size, b.step_size);
  EXPECT_EQ(a.steps_differ, b.steps_differ);
  EXPECT_EQ(a.policy, b.policy);
  EXPECT_EQ(a.program, b.program);
  EXPECT_EQ(a.dense_program, b.dense_program);
  EXPECT_EQ(a.metrics, b.metrics);
  EXPECT_EQ(a.ledger, b.ledger);
  EXPECT_EQ(a.gradients, b.gradients);
  EXPECT_EQ(a.notes, b.notes);
}

Trace read_back(const Trace& trace) {
  return parse_trace(format_trace(trace), "t.json");
}

TEST(ParseTrace, ReadsBackTheWrittenTrace) {
  expect_same(read_back(sample_trace()), sample_trace());
}

TEST(ParseTrace, LeavesTheTimelineEmpty) {
  EXPECT_TRUE(read_back(sample_trace()).timeline.spans.empty());
}

TEST(ParseTrace, ReadsBackASimulation) {
  Trace trace = sample_trace();
  trace.simulated = true;
  trace.gradients.clear();
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackTheDenseStepProgram) {
  Trace trace = sample_trace();
  trace.dense_program = trace.program;
  trace.dense_program->storages[2].bytes = 8192;
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackWhatAStepProcesses) {
  Trace trace = sample_trace();
  trace.step_size = {.tokens = 16384, .flops = 6.5e18};
  trace.steps_differ = true;
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackTheStreamsOfStorages) {
  Trace trace = sample_trace();
  trace.program.storages[1].stream = kFirstOtherStream;
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackTheSpreadOfTimes) {
  Trace trace = sample_trace();
  trace.program.compute_spread_ns.assign(trace.program.events.size(), 7);
  expect_same(parse_trace(format_trace(trace), "t.json"), trace);
}

TEST(ParseTrace, ReadsBackCalibrationAndLink) {
  Trace trace = sample_trace();
  trace.environment.link.d2h.start_ns = 12;
  trace.environment.link.h2d.compute_ns_per_byte = 0.25;
  trace.environment.link.is_shared = true;
  trace.environment.link.bidirectional_bytes_per_second = 1.5e9;
  trace.environment.calibration.emplace();
  trace.environment.calibration->d2h = {{64, {3, 2, 4}}};
  trace.environment.calibration->standstills = {{300, {5, 4, 6}}};
  trace.settings.link_cap = {{1e9, 5}, {2e9, 6}};
  expect_same(parse_trace(format_trace(trace), "t.json"), trace);
}

TEST(ParseTrace, ReadsBackCheckpointedModules) {
  Trace trace = sample_trace();
  trace.settings.checkpointed = {"layers.*", "head"};
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackTheLargestAndSmallestNumbers) {
  Trace trace = sample_trace();
  trace.settings.seed = std::numeric_limits<std::uint64_t>::max();
  trace.settings.device_memory_bytes = std::numeric_limits<Bytes>::max();
  trace.environment.link.d2h.bytes_per_second = 1e9 / 3;
  trace.program.saved[0].version = std::numeric_limits<std::uint32_t>::max();
  trace.policy.threshold_bytes = std::nullopt;
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackTheSourceOfModelledTimes) {
  expect_same(read_back(modelled_sample_trace()), modelled_sample_trace());
  Trace trace = virtual_sample_trace();
  expect_same(read_back(trace), trace);
  trace.environment.kernel_times = "h200.json.gz";
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, RejectsKernelTimesThatAreNotAName) {
  EXPECT_THAT(error_with("/environment/kernel_times", 5), HasSubstr("environment.kernel_times"));
}

TEST(ParseTrace, ReadsBackATensorWithoutStorage) {
  Trace trace = sample_trace();
  trace.program.saved[0].movability = Movability::kUnsupportedLayout;
  trace.program.saved[0].storage = -1;
  trace.program.saved[0].layout = TensorLayout{"float32", {32, 32}, {}};
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackEveryReasonOfTheLedger) {
  Trace trace = sample_trace();
  trace.ledger.clear();
  for (int reason = 0; reason < static_cast<int>(PlacementReason::kCount); ++reason)
    trace.ledger[{Place::kDevice, static_cast<PlacementReason>(reason)}] = {1, 8};
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackATensorThatBackwardSavesAgain) {
  Trace trace = sample_trace();
  trace.program.saved[0].movability = Movability::kUnpacked;
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackEveryKindOfEvent) {
  Trace trace = sample_trace();
  trace.program.saved[0].escapes = true;
  trace.program.events.push_back({EventKind::kFreeUnpacked, 0, 3});
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, ReadsBackModulesAndSourceLines) {
  Trace trace = sample_trace();
  trace.program.names.insert(trace.program.names.end(), {"layers.0", "train.py:12"});
  trace.program.saved[0].module = 4;
  expect_same(read_back(trace), trace);
  trace.program.saved[0].line = 5;
  expect_same(read_back(trace), trace);
}

TEST(ParseTrace, WritesNoColumnForSourceLinesThatAreUnknown) {
  EXPECT_FALSE(json::parse(format_trace(sample_trace())).at("program").contains("lines"));
}

TEST(ParseTrace, ReadsBackRandomStepPrograms) {
  constexpr std::uint64_t kSeed = 20'260'105;
  for (std::uint64_t seed = kSeed; seed < kSeed + 300; ++seed) {
    SCOPED_TRACE("seed " + std::to_string(seed));
    RandomProgram random(seed);
    Trace trace = sample_trace();
    trace.program = random.make();
    if (seed % 2 == 0) trace.dense_program = random.make();
    expect_same(read_back(trace), trace);
  }
}

TEST(ParseTrace, SkipsKeysAndColumnsOfLaterVersions) {
  json document = json::parse(format_trace(sample_trace()));
  document["cluster"] = {{"nodes", 2}};
  document["environment"]["driver"] = "570";
  auto& saved = document["program"]["saved"];
  saved["columns"].insert(saved["columns"].begin(), "alias");
  for (json& row : saved["rows"]) row.insert(row.begin(), 5);
  expect_same(parse_trace(document.dump(), "t.json"), sample_trace());
}

TEST(ParseTrace, SkipsTheEventsAnywhereInTheFile) {
  json document = json::parse(format_trace(sample_trace()));
  const std::string events = R"("traceEvents": [{"traceEvents": [[{"schema": 1}]]}, null, "x", 1.5, true],)";
  expect_same(parse_trace("{" + events + document.dump().substr(1), "t.json"), sample_trace());
}

TEST(ParseTrace, ReadsTheSampleTraceOfTheDocument) {
  const std::string document = read_file(OFFPROF_DOCS_DIR "/reference/trace-format.md");
  EXPECT_THAT(document, HasSubstr("```json\n" + format_trace(sample_trace()) + "```"));
}

TEST(ReadTrace, ReadsGzipUnderAnyName) {
  const TestFolder folder;
  const std::string path = folder / "trace.json";
  write_trace(path + ".gz", sample_trace());
  std::filesystem::rename(path + ".gz", path);
  expect_same(read_trace(path), sample_trace());
}

TEST(ReadTrace, ReportsAMissingFile) {
  EXPECT_THROW(read_trace(TestFolder() / "no_such_trace.json"), Error);
}

TEST(CorruptTrace, RejectsAnEmptyFile) {
  EXPECT_THAT(error_of(" \n"), HasSubstr("'t.json' is empty"));
}

TEST(CorruptTrace, RejectsTextThatIsNotJson) {
  EXPECT_THAT(error_of("{\"a\": 1,\n\"b\" 2}"), HasSubstr("'t.json' is not JSON: line 2, column 5: "));
}

TEST(CorruptTrace, ReportsTruncationAtAnyPoint) {
  const std::string text = format_trace(sample_trace());
  for (std::size_t size = 1; size + 2 < text.size(); size += 13) {
    EXPECT_THAT(error_of(text.substr(0, size)), HasSubstr("truncated")) << size;
  }
}

TEST(CorruptTrace, RejectsTextAfterTheEnd) {
  EXPECT_THAT(error_of(format_trace(sample_trace()) + "}"), HasSubstr("is not JSON"));
}

TEST(CorruptTrace, RejectsEndlessNesting) {
  EXPECT_THAT(error_of(std::string(100'000, '[')), HasSubstr("nested too deeply"));
}

TEST(CorruptTrace, RejectsAValueThatIsNotAnObject) {
  EXPECT_THAT(error_of("[1]"), HasSubstr("it is not a JSON object"));
}

TEST(CorruptTrace, RejectsAnotherMajorVersion) {
  EXPECT_THAT(error_with("/schema", "offprof.trace/2"),
              HasSubstr("has schema 'offprof.trace/2'; this version of offprof reads 'offprof.trace/1'"));
}

TEST(CorruptTrace, RejectsAChromeTraceOfAnotherTool) {
  const std::string error = error_of(R"({"schemaVersion": 1, "traceEvents": [{"ph": "X"}]})");
  EXPECT_THAT(error, HasSubstr("a Chrome trace from another tool"));
  EXPECT_THAT(error, HasSubstr("`program`"));
  EXPECT_THAT(error, HasSubstr("offprof run"));
}

TEST(CorruptTrace, RejectsAPolicyFile) {
  EXPECT_THAT(error_of(R"({"schema": "offprof.policy/1"})"), HasSubstr("it is an offprof policy file"));
}

TEST(CorruptTrace, RejectsAReport) {
  EXPECT_THAT(error_of(R"({"schema": "offprof.report/1"})"), HasSubstr("it is an offprof report"));
}

TEST(CorruptTrace, RejectsAMissingMember) {
  for (const char* key : {"tool", "simulated", "environment", "model", "settings", "policy", "measured",
                          "ledger", "gradients", "program"}) {
    EXPECT_THAT(error_without(key), HasSubstr("t.json: '" + std::string(key) + "' is missing"));
  }
}

TEST(CorruptTrace, RejectsAMemberOfAnotherType) {
  EXPECT_THAT(error_with("/simulated", "no"), HasSubstr("t.json: simulated: "));
  EXPECT_THAT(error_with("/environment", 3), HasSubstr("t.json: environment: "));
  EXPECT_THAT(error_with("/tool/argv/1", 3), HasSubstr("t.json: tool.argv[1]: "));
  EXPECT_THAT(error_with("/program/names", "x"), HasSubstr("t.json: program.names: "));
  EXPECT_THAT(error_with("/program/saved/rows/0/3", 1), HasSubstr("t.json: program.saved.rows[0][3]: "));
}

TEST(CorruptTrace, RejectsANegativeNumber) {
  EXPECT_THAT(error_with("/settings/steps", -1), HasSubstr("t.json: settings.steps: -1 is not"));
  EXPECT_THAT(error_with("/environment/link/d2h/bytes_per_second", -1.5), HasSubstr("-1.5"));
  EXPECT_THAT(error_with("/program/storages/bytes/1", -4),
              HasSubstr("program.storages.bytes[1]: -4 is negative"));
  EXPECT_THAT(error_with("/program/events/compute_ns/1", -4),
              HasSubstr("program.events.compute_ns[1]: -4 is negative"));
}

TEST(CorruptTrace, RejectsANumberThatDoesNotFit) {
  EXPECT_THAT(error_with("/environment/threads", 1LL << 40), HasSubstr("environment.threads"));
  EXPECT_THAT(error_with("/program/events/ids/0", 1LL << 40), HasSubstr("program.events.ids[0]"));
  EXPECT_THAT(error_with("/program/resident_bytes", 1ULL << 63), HasSubstr("program.resident_bytes"));
  EXPECT_THAT(error_with("/program/resident_bytes", 1.5), HasSubstr("1.5 is not a whole number"));
}

TEST(CorruptTrace, RejectsAnUnknownName) {
  EXPECT_THAT(error_with("/policy/scheduler", "lru"), HasSubstr("policy.scheduler: 'lru' is not one of"));
  EXPECT_THAT(error_with("/ledger/0/reason", "whim"), HasSubstr("ledger[0].reason: 'whim' is not one of"));
  EXPECT_THAT(error_with("/program/saved/rows/0/2", "fixed"), HasSubstr("'fixed' is not one of movable"));
  EXPECT_THAT(error_with("/program/storages/roles", "PIX"), HasSubstr("letter 2 is \"X\""));
}

TEST(CorruptTrace, RejectsStreamsOfStoragesThatCannotBe) {
  EXPECT_THAT(error_with("/program/storages/streams", json::array({0, kMostStreams, 0})),
              HasSubstr("program.storages.streams[1]"));
  EXPECT_THAT(error_with("/program/storages/streams", json::array({3})),
              HasSubstr("program.storages.streams"));
}

TEST(CorruptTrace, RejectsAnUnknownPolicySetting) {
  EXPECT_THAT(error_with("/policy/tier", "disk"), HasSubstr("t.json: policy: unknown key 'tier'"));
}

TEST(CorruptTrace, RejectsColumnsOfUnequalLength) {
  EXPECT_THAT(error_with("/program/events/ids", json::array({1})), HasSubstr("program.events.ids: has 1"));
  EXPECT_THAT(error_with("/program/storages/bytes", json::array()), HasSubstr("program.storages.bytes"));
}

TEST(CorruptTrace, RejectsAMissingColumn) {
  EXPECT_THAT(error_with("/program/saved/columns/0", "shop"), HasSubstr("column 'storage' is missing"));
}

TEST(CorruptTrace, RejectsAShortRow) {
  EXPECT_THAT(error_with("/program/saved/rows/0", json::array({2, 0})),
              HasSubstr("program.saved.rows[0]: has 2 elements"));
}

TEST(CorruptProgram, RejectsAnIndexOutOfRange) {
  EXPECT_THAT(error_with("/program/events/ids/2", 99),
              HasSubstr("t.json: program.events[2]: storage index 99 of 3"));
  EXPECT_THAT(error_with("/program/events/ids/0", 4), HasSubstr("program.events[0]: name index 4 of 4"));
  EXPECT_THAT(error_with("/program/events/ids/8", 1),
              HasSubstr("program.events[8]: saved tensor index 1 of 1"));
  EXPECT_THAT(error_with("/program/saved/rows/0/0", 3), HasSubstr("program.saved[0]: storage index 3 of 3"));
  EXPECT_THAT(error_with("/program/saved/rows/0/0", -1),
              HasSubstr("program.saved[0]: storage index -1 of 3"));
  EXPECT_THAT(error_with("/program/saved/rows/0/5", 4), HasSubstr("program.saved[0]: op: name index 4 of 4"));
}

TEST(CorruptTrace, RejectsSourceLinesThatHaveNoName) {
  EXPECT_THAT(error_with("/program/lines", {4}), HasSubstr("program.saved[0]: line: name index 4 of 4"));
  EXPECT_THAT(error_with("/program/lines", {0, 0}), HasSubstr("program.lines: has 2 elements"));
  EXPECT_THAT(error_with("/program/lines", {"train.py:12"}), HasSubstr("program.lines[0]"));
}

TEST(CorruptProgram, RejectsSizesAndStridesOfUnequalLength) {
  EXPECT_THAT(error_with("/program/saved/rows/0/8", json::array({1})), HasSubstr("differ in length"));
}

TEST(CorruptProgram, RejectsASecondAllocation) {
  EXPECT_THAT(error_with_event(5, {EventKind::kAlloc, 2, 0}),
              HasSubstr("program.events[5]: allocates a storage for the second time"));
}

TEST(CorruptProgram, RejectsAFreeBeforeItsAllocation) {
  EXPECT_THAT(error_with_event(1, {EventKind::kFree, 2, 0}),
              HasSubstr("program.events[1]: frees a storage before its allocation"));
}

TEST(CorruptProgram, RejectsARequestToFreeWhatDoesNotExist) {
  EXPECT_THAT(error_with_event(1, {EventKind::kFreeRequested, 2, 0}),
              HasSubstr("program.events[1]: requests to free a storage that does not exist"));
  EXPECT_THAT(error_with_event(6, {EventKind::kFreeRequested, 2, 0}),
              HasSubstr("program.events[6]: requests to free a storage that does not exist"));
}

TEST(CorruptProgram, RejectsASecondFree) {
  EXPECT_THAT(error_with_event(6, {EventKind::kFree, 2, 0}),
              HasSubstr("frees a storage for the second time"));
}

TEST(CorruptProgram, RejectsAPackBeforeTheAllocationOfItsStorage) {
  EXPECT_THAT(error_with_event(2, {EventKind::kPack, 0, 0}),
              HasSubstr("program.events[2]: packs a tensor before the allocation of its storage"));
}

TEST(CorruptProgram, RejectsASecondPack) {
  EXPECT_THAT(error_with_event(5, {EventKind::kPack, 0, 0}),
              HasSubstr("packs saved tensor 0, but 1 is next"));
}

TEST(CorruptProgram, RejectsAMissingPack) {
  StepProgram program = sample_trace().program;
  program.events.resize(3);
  program.events.push_back({EventKind::kOpEnd, 2, 0});
  EXPECT_THAT(error_of_program(program), HasSubstr("program.events: 0 of 1 saved tensors are packed"));
}

TEST(CorruptProgram, RejectsAnUnpackBeforeItsPack) {
  EXPECT_THAT(error_with_event(0, {EventKind::kUnpack, 0, 0}), HasSubstr("unpacks a tensor before its pack"));
}

TEST(CorruptProgram, RejectsAnUnpackAfterItsRelease) {
  EXPECT_THAT(error_with_event(10, {EventKind::kUnpack, 0, 0}),
              HasSubstr("unpacks a tensor after its release"));
}

TEST(CorruptProgram, RejectsAReleaseBeforeItsPack) {
  EXPECT_THAT(error_with_event(0, {EventKind::kRelease, 0, 0}),
              HasSubstr("releases a tensor before its pack"));
}

TEST(CorruptProgram, RejectsASecondRelease) {
  EXPECT_THAT(error_with_event(10, {EventKind::kRelease, 0, 0}),
              HasSubstr("releases a tensor for the second time"));
}

/// Returns the error for the sample program with an escaping first tensor, its kFreeUnpacked and one more
/// event at the end.
std::string error_of_escaping_program(Event last) {
  Trace trace = sample_trace();
  trace.program.saved[0].escapes = true;
  trace.program.events.push_back({EventKind::kFreeUnpacked, 0, 0});
  trace.program.events.push_back(last);
  return error_of(format_trace(trace));
}

TEST(CorruptProgram, RejectsDroppingATensorThatDoesNotEscapeAfterItsNode) {
  EXPECT_THAT(error_with_event(11, {EventKind::kFreeUnpacked, 0, 0}),
              HasSubstr("does not escape, but not between its unpack and the end of its node"));
}

TEST(CorruptProgram, RejectsDroppingATensorBeforeItsUnpack) {
  StepProgram program = sample_trace().program;
  program.saved[0].escapes = true;
  program.events.at(6) = {EventKind::kFreeUnpacked, 0, 0};
  EXPECT_THAT(error_of_program(program), HasSubstr("drops a tensor before its unpack"));
}

TEST(CorruptProgram, RejectsDroppingATensorTwice) {
  EXPECT_THAT(error_of_escaping_program({EventKind::kFreeUnpacked, 0, 0}),
              HasSubstr("or for the second time"));
}

TEST(CorruptProgram, RejectsAnOperatorThatDoesNotEnd) {
  EXPECT_THAT(error_with_event(11, {EventKind::kNodeEnd, 0, 0}), HasSubstr("an operator does not end"));
}

TEST(CorruptProgram, RejectsTheEndOfAnotherOperator) {
  EXPECT_THAT(error_with_event(4, {EventKind::kOpEnd, 3, 0}), HasSubstr("ends an operator that is not open"));
}

}  // namespace
}  // namespace offprof
