#include "engine/devices/virtual_gpu/model/kernel_times.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <functional>
#include <nlohmann/json.hpp>

#include "tests/support/test_folder.h"
#include "traces/base/error.h"
#include "traces/io/file.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::Optional;

/// Reads a trace with those events.
KernelTimes times_in(const std::string& events, const std::string& suffix = ".json",
                     const std::string& more = "") {
  const TestFolder folder;
  const std::string path = folder / ("kernel_times" + suffix);
  write_file(path, "{" + more + "\"schemaVersion\": 1, \"traceEvents\": [" + events + "]}");
  return read_kernel_times(path);
}

std::string message_of(const std::function<void()>& action) {
  try {
    action();
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kInput);
    return error.what();
  }
  ADD_FAILURE() << "no Error was thrown";
  return "";
}

const std::string kGemm =
    R"({"ph": "X", "cat": "kernel", "name": "gemm<float>", "ts": 5, "dur": 12.5, "args":
        {"External id": 7, "correlation": 70, "grid": [8, 2, 1], "block": [128, 1, 1]}})";
const std::string kReduce =
    R"({"ph": "X", "cat": "kernel", "name": "splitK", "ts": 20, "dur": 2.25, "args":
        {"External id": 7, "correlation": 71, "grid": [4, 1, 1], "block": [32, 1, 1]}})";
const std::string kMm =
    R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "ts": 1, "dur": 9, "args":
        {"External id": 7, "Input Dims": [[4, 8], [8, 16]], "Input type": ["c10::BFloat16", "c10::BFloat16"]}})";

TEST(KernelTimes, FindsAKernelByItsNameAndLaunchSizes) {
  const KernelTimes times = times_in(kGemm);
  EXPECT_THAT(times.of_kernel("gemm<float>|8,2,1|128,1,1"), Optional(12'500));
  EXPECT_EQ(times.of_kernel("gemm<float>|8,2,2|128,1,1"), std::nullopt);
}

TEST(KernelTimes, SumsTheKernelsOfAnOperator) {
  EXPECT_THAT(times_in(kGemm + "," + kReduce + "," + kMm).of_op("aten::mm(bfloat16[4,8],bfloat16[8,16])"),
              Optional(14'750));
}

TEST(KernelTimes, AcceptsKernelsAndOperatorsInAnyOrder) {
  EXPECT_THAT(times_in(kMm + "," + kReduce + "," + kGemm).of_op("aten::mm(bfloat16[4,8],bfloat16[8,16])"),
              Optional(14'750));
}

TEST(KernelTimes, FindsTheOperatorThroughTheLaunch) {
  const std::string launch =
      R"({"ph": "X", "cat": "cuda_runtime", "name": "cudaLaunchKernel", "dur": 3, "args": {"External id": 7, "correlation": 9}})";
  const std::string kernel =
      R"({"ph": "X", "cat": "kernel", "name": "k", "dur": 6, "args": {"correlation": 9, "grid": [1, 1, 1], "block": [1, 1, 1]}})";
  EXPECT_THAT(times_in(kernel + "," + launch + "," + kMm).of_op("aten::mm(bfloat16[4,8],bfloat16[8,16])"),
              Optional(6'000));
}

TEST(KernelTimes, LeavesNumbersAndNoneOutOfAnOperatorsKey) {
  const std::string add =
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::add", "dur": 9, "args":
          {"External id": 7, "Input Dims": [[4, 8], [], []], "Input type": ["float", "Scalar", ""]}})";
  EXPECT_THAT(times_in(kGemm + "," + add).of_op("aten::add(float32[4,8])"), Optional(12'500));
}

TEST(KernelTimes, TensorListsGiveAKeyWithoutDtypes) {
  const std::string cat =
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::cat", "dur": 9, "args":
          {"External id": 7, "Input Dims": [[[4, 8], [2, 8]], []], "Input type": ["TensorList", "Scalar"]}})";
  EXPECT_THAT(times_in(kGemm + "," + cat).of_op("aten::cat([4,8],[2,8])"), Optional(12'500));
}

TEST(KernelTimes, HasNoOperatorsIfShapesWereNotRecorded) {
  const std::string mm =
      R"({"ph": "X", "cat": "cpu_op", "name": "aten::mm", "dur": 9, "args": {"External id": 7}})";
  EXPECT_EQ(times_in(kGemm + "," + mm).of_op("aten::mm()"), std::nullopt);
}

TEST(KernelTimes, TakesTheMedianOfSeveralLaunches) {
  KernelTimes times;
  for (const Nanoseconds duration : {900, 100, 300}) times.add_kernel("k", duration);
  for (const Nanoseconds duration : {4, 1, 3, 2}) times.add_op("op", duration);
  EXPECT_THAT(times.of_kernel("k"), Optional(300));
  EXPECT_THAT(times.of_op("op"), Optional(2));
}

TEST(KernelTimes, ReadsACompressedTrace) {
  EXPECT_FALSE(times_in(kGemm, ".json.gz").empty());
}

TEST(KernelTimes, ReadsATraceThatIsAListOfEvents) {
  const TestFolder folder;
  const std::string path = folder / "events.json";
  write_file(path, "[" + kMm + "," + kGemm + "]");
  const KernelTimes times = read_kernel_times(path);
  EXPECT_THAT(times.of_op("aten::mm(bfloat16[4,8],bfloat16[8,16])"), Optional(12'500));
}

TEST(KernelTimes, SkipsUnusableEvents) {
  EXPECT_FALSE(times_in(R"({"ph": "M", "name": "process_name"}, 7, {"cat": "kernel", "name": "no args"},)"
                        R"({"cat": "kernel", "name": "no duration", "args": {}}, )" +
                        kGemm)
                   .empty());
}

TEST(KernelTimes, AKeyWithAnUnknownDtypeHasNoDtypes) {
  const std::vector<std::int64_t> sizes{4, 8}, none;
  EXPECT_EQ(op_key("f", {{"float32", sizes}, {"", sizes}}), "f([4,8],[4,8])");
  EXPECT_EQ(op_key("f", {{"float32", sizes}, {"", none}}), "f(float32[4,8])");
}

TEST(KernelTimesErrors, RejectsATraceWithoutKernels) {
  EXPECT_THAT(message_of([] { times_in(kMm); }), HasSubstr("has no kernels"));
}

TEST(KernelTimesErrors, RejectsSimulatedTimes) {
  for (const char* mark : {R"("simulated": true, )", R"("environment": {"times_are_modelled": true}, )"})
    EXPECT_THAT(message_of([&] { times_in(kGemm, ".json", mark); }), HasSubstr("were simulated")) << mark;
}

TEST(KernelTimesErrors, RejectsAFileThatIsNoTrace) {
  const TestFolder folder;
  const std::string path = folder / "no_trace.json";
  for (const char* text : {"{}", "3", "{\"traceEvents\": 5}", "{\"traceEvents\": [", "no JSON"}) {
    write_file(path, text);
    EXPECT_THAT(message_of([&] { read_kernel_times(path); }),
                AllOf(HasSubstr(path), HasSubstr("is not a trace")))
        << text;
  }
}

TEST(KernelTimesErrors, ReportsAnEmptyFile) {
  const TestFolder folder;
  const std::string path = folder / "empty.json";
  write_file(path, "");
  EXPECT_THAT(message_of([&] { read_kernel_times(path); }), HasSubstr("is empty"));
}

TEST(KernelTimesErrors, NamesAnInvalidDuration) {
  for (const char* duration : {"1e300", "-1", "\"abc\"", "null"}) {
    const std::string event =
        std::string(R"({"cat": "kernel", "name": "gemm", "args": {}, "dur": )") + duration + "}";
    EXPECT_THAT(
        message_of([&] { times_in(kMm + "," + event); }),
        AllOf(HasSubstr("event 2, \"gemm\": its `dur` is "), HasSubstr("not a valid kernel duration")))
        << duration;
  }
}

TEST(KernelTimesErrors, RejectsDeepNesting) {
  const std::string deep(100'000, '[');
  for (const std::string& text :
       {deep, R"({"traceEvents": [{"cat": "cpu_op", "args": {"Input Dims": )" + deep,
        R"({"environment": )" + deep})
    EXPECT_THAT(message_of([&] { parse_kernel_times(text, "t.json"); }), HasSubstr("nested too deeply"));
}

TEST(KernelTimesErrors, RejectsTimesWhoseSumOverflows) {
  nlohmann::json events = nlohmann::json::array();
  const nlohmann::json sizes = {{"grid", {1, 1, 1}}, {"block", {1, 1, 1}}, {"External id", 1}};
  for (int i = 0; i < 12'000; ++i) events.push_back({{"cat", "kernel"}, {"dur", 8e10}, {"args", sizes}});
  EXPECT_NO_THROW(parse_kernel_times(events.dump(), "t.json"));
  for (int i = 0; i < 1000; ++i) events.push_back(events[0]);
  EXPECT_THAT(message_of([&] { parse_kernel_times(events.dump(), "t.json"); }),
              HasSubstr("the kernels take more than 30 years in total"));
}

TEST(KernelTimesErrors, NamesAMissingFile) {
  EXPECT_THAT(message_of([] { read_kernel_times("/nowhere/t.json"); }), HasSubstr("/nowhere/t.json"));
}

}  // namespace
}  // namespace offprof
