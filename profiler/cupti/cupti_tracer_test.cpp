#include "profiler/cupti/cupti_tracer.h"

#include <cupti_driver_cbid.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <set>
#include <string>
#include <vector>

#include "profiler/cupti/refusal.h"
#include "tests/support/fake_cupti.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::Contains;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;
using testing::Not;
using testing::UnorderedElementsAre;

CUpti_ActivityKernel10 kernel(std::uint64_t begin) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = "gemm";
  record.start = begin;
  record.end = begin + 5;
  return record;
}

CUpti_ActivitySynchronization2 wait(std::uint64_t begin) {
  CUpti_ActivitySynchronization2 record{};
  record.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  record.start = record.end = begin;
  return record;
}

class CuptiTracerTest : public testing::Test {
 protected:
  std::string refusal() {
    try {
      CuptiTracer{cupti_};
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      return std::string(error.what()) + "\n" + error.hint();
    }
    return "none";
  }

  FakeCupti fake_;
  CuptiFunctions cupti_ = FakeCupti::functions();
};

TEST_F(CuptiTracerTest, RecordsFromBeginToEnd) {
  CuptiTracer tracer(cupti_);
  fake_.emit(kernel(10));
  tracer.begin(TraceDetail::kAll);
  fake_.emit(kernel(20));
  fake_.emit(wait(30));
  const GpuActivity activity = tracer.end();
  fake_.emit(kernel(40));
  ASSERT_EQ(activity.work.size(), 1U);
  EXPECT_EQ(activity.work[0].begin_ns, 20);
  EXPECT_EQ(activity.waits.size(), 1U);
  EXPECT_THAT(fake_.enabled, IsEmpty());
}

TEST_F(CuptiTracerTest, StreamDetailRecordsOnlyKernelsCopiesAndSets) {
  CuptiTracer tracer(cupti_);
  tracer.begin(TraceDetail::kStreams);
  EXPECT_THAT(fake_.enabled, ElementsAre(CUPTI_ACTIVITY_KIND_MEMCPY, CUPTI_ACTIVITY_KIND_MEMSET,
                                         CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL, CUPTI_ACTIVITY_KIND_MEMCPY2));
  tracer.end();
}

TEST_F(CuptiTracerTest, NeverSerializesKernels) {
  CuptiTracer tracer(cupti_);
  tracer.begin(TraceDetail::kAll);
  EXPECT_THAT(fake_.enabled, Not(Contains(CUPTI_ACTIVITY_KIND_KERNEL)));
  tracer.end();
}

TEST_F(CuptiTracerTest, SkipsCallsWithoutGpuWork) {
  CuptiTracer tracer(cupti_);
  tracer.begin(TraceDetail::kAll);
  EXPECT_GT(fake_.quiet_runtime_calls.size(), 5U);
  EXPECT_THAT(fake_.driver_calls, UnorderedElementsAre(CUPTI_DRIVER_TRACE_CBID_cuLaunchKernel,
                                                       CUPTI_DRIVER_TRACE_CBID_cuLaunchKernelEx,
                                                       CUPTI_DRIVER_TRACE_CBID_cuLaunchCooperativeKernel));
  tracer.end();
  EXPECT_THAT(fake_.driver_calls, IsEmpty());
}

TEST_F(CuptiTracerTest, KeepsCuptisBuffersOutOfDeviceMemory) {
  const CuptiTracer tracer(cupti_);
  EXPECT_THAT(fake_.attributes, Contains(CUPTI_ACTIVITY_ATTR_MEM_ALLOCATION_TYPE_HOST_PINNED));
}

TEST_F(CuptiTracerTest, ReportsDroppedRecords) {
  CuptiTracer tracer(cupti_, {2, sizeof(CUpti_ActivityKernel10)});
  tracer.begin(TraceDetail::kStreams);
  for (std::uint64_t i = 1; i <= 5; ++i) fake_.emit(kernel(i));
  const GpuActivity activity = tracer.end();
  EXPECT_EQ(activity.work.size(), 2U);
  EXPECT_EQ(activity.dropped_records, 3U);
}

TEST_F(CuptiTracerTest, DrainingMakesRoom) {
  CuptiTracer tracer(cupti_, {2, sizeof(CUpti_ActivityKernel10)});
  tracer.begin(TraceDetail::kStreams);
  for (std::uint64_t i = 1; i <= 6; ++i) {
    fake_.emit(kernel(i));
    tracer.drain();
  }
  const GpuActivity activity = tracer.end();
  EXPECT_EQ(activity.work.size(), 6U);
  EXPECT_EQ(activity.dropped_records, 0U);
}

TEST_F(CuptiTracerTest, AcceptsBuffersInAnyOrder) {
  CuptiTracer tracer(cupti_);
  tracer.begin(TraceDetail::kStreams);
  fake_.emit(kernel(10));
  fake_.set_aside();
  fake_.emit(kernel(20));
  const GpuActivity activity = tracer.end();
  ASSERT_EQ(activity.work.size(), 2U);
  EXPECT_EQ(activity.work[0].begin_ns, 10);
}

TEST_F(CuptiTracerTest, PushesAndPopsIdsOnlyWhileEverythingIsRecorded) {
  CuptiTracer tracer(cupti_);
  tracer.push(1);
  EXPECT_THAT(fake_.external_ids, IsEmpty());
  tracer.begin(TraceDetail::kAll);
  tracer.push(2);
  tracer.push(3);
  tracer.pop();
  EXPECT_THAT(fake_.external_ids, ElementsAre(2));
  tracer.pop();
  tracer.end();
  tracer.push(4);
  EXPECT_THAT(fake_.external_ids, IsEmpty());
}

TEST_F(CuptiTracerTest, ReleasesCuptiAtTheEnd) {
  { const CuptiTracer tracer(cupti_); }
  EXPECT_FALSE(fake_.is_subscribed);
  { const CuptiTracer again(cupti_); }
}

TEST_F(CuptiTracerTest, ReleasesCuptiIfItCannotBegin) {
  fake_.results["ActivityRegisterTimestampCallback"] = CUPTI_ERROR_UNKNOWN;
  EXPECT_THAT(refusal(), HasSubstr("setting the clock"));
  EXPECT_FALSE(fake_.is_subscribed);
}

TEST_F(CuptiTracerTest, NamesTheOtherTracer) {
  fake_.results["Subscribe"] = CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED;
  fake_.holder = "CUPTI for Nsight Systems";
  EXPECT_THAT(refusal(),
              AllOf(HasSubstr("another tool already traces"), HasSubstr("CUPTI for Nsight Systems")));
}

TEST_F(CuptiTracerTest, HasASeparateHintForEachRefusal) {
  std::set<std::string> refusals;
  const auto kRefusals = {CUPTI_ERROR_MULTIPLE_SUBSCRIBERS_NOT_SUPPORTED,
                          CUPTI_ERROR_INSUFFICIENT_PRIVILEGES,
                          CUPTI_ERROR_VIRTUALIZED_DEVICE_INSUFFICIENT_PRIVILEGES,
                          CUPTI_ERROR_VIRTUALIZED_DEVICE_NOT_SUPPORTED,
                          CUPTI_ERROR_NOT_INITIALIZED,
                          CUPTI_ERROR_CONFIDENTIAL_COMPUTING_NOT_SUPPORTED,
                          CUPTI_ERROR_MIG_DEVICE_NOT_SUPPORTED,
                          CUPTI_ERROR_WSL_DEVICE_NOT_SUPPORTED,
                          CUPTI_ERROR_UNKNOWN};
  for (const CUptiResult result : kRefusals) {
    fake_.results["Subscribe"] = result;
    const std::string text = refusal();
    EXPECT_THAT(text, Not(HasSubstr("the call failed")));
    refusals.insert(text);
  }
  EXPECT_EQ(refusals.size(), kRefusals.size());
}

TEST_F(CuptiTracerTest, NamesTheNumberOfAnUnknownRefusal) {
  EXPECT_THAT(cupti_refusal(CUPTI_ERROR_HARDWARE, "beginning").what(), HasSubstr("error 9"));
}

}  // namespace
}  // namespace offprof
