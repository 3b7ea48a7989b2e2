#include "profiler/cupti/activity_reader.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <vector>

#include "tests/support/fake_cupti.h"

namespace offprof {
namespace {

using testing::ElementsAre;

CUpti_ActivityKernel10 kernel(const char* name, std::uint64_t begin, std::uint64_t end,
                              std::uint32_t correlation = 1) {
  CUpti_ActivityKernel10 record{};
  record.kind = CUPTI_ACTIVITY_KIND_CONCURRENT_KERNEL;
  record.name = name;
  record.start = begin;
  record.end = end;
  record.streamId = 7;
  record.correlationId = correlation;
  return record;
}

CUpti_ActivityMemcpy6 copy_out(std::uint64_t begin, std::uint64_t end, std::uint64_t bytes) {
  CUpti_ActivityMemcpy6 record{};
  record.kind = CUPTI_ACTIVITY_KIND_MEMCPY;
  record.copyKind = CUPTI_ACTIVITY_MEMCPY_KIND_DTOH;
  record.srcKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  record.dstKind = CUPTI_ACTIVITY_MEMORY_KIND_PINNED;
  record.bytes = bytes;
  record.start = begin;
  record.end = end;
  record.streamId = 13;
  record.correlationId = 2;
  return record;
}

CUpti_ActivityAPI runtime_call(std::uint32_t number, std::uint64_t begin, std::uint64_t end) {
  CUpti_ActivityAPI record{};
  record.kind = CUPTI_ACTIVITY_KIND_RUNTIME;
  record.cbid = number;
  record.start = begin;
  record.end = end;
  record.threadId = 99;
  record.correlationId = 1;
  return record;
}

/// Records one after the other, as in a buffer.
class Buffer {
 public:
  template <typename Record>
  Buffer& add(const Record& record) {
    static_assert(sizeof record % sizeof(std::uint64_t) == 0);
    const std::size_t words = sizeof record / sizeof(std::uint64_t);
    words_.resize(words_.size() + words);
    std::memcpy(words_.data() + words_.size() - words, &record, sizeof record);
    return *this;
  }
  std::uint8_t* data() { return reinterpret_cast<std::uint8_t*>(words_.data()); }
  std::size_t bytes() const { return words_.size() * sizeof(std::uint64_t); }

 private:
  std::vector<std::uint64_t> words_;
};

class ActivityReaderTest : public testing::Test {
 protected:
  GpuActivity read(Buffer buffer) {
    reader_.read(buffer.data(), buffer.bytes());
    return reader_.take();
  }

  FakeCupti fake_;
  CuptiFunctions cupti_ = FakeCupti::functions();
  ActivityReader reader_{cupti_};
};

TEST_F(ActivityReaderTest, ReadsTheWorkOfAStream) {
  CUpti_ActivityMemset4 set{};
  set.kind = CUPTI_ACTIVITY_KIND_MEMSET;
  set.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  set.bytes = 64;
  set.start = 40;
  set.end = 50;
  const GpuActivity activity =
      read(Buffer().add(kernel("gemm", 10, 20)).add(copy_out(20, 30, 4096)).add(set));
  ASSERT_EQ(activity.work.size(), 3U);
  EXPECT_EQ(activity.work[0].kind, StreamWorkKind::kKernel);
  EXPECT_EQ(activity.names[static_cast<std::size_t>(activity.work[0].name)], "gemm");
  EXPECT_EQ(activity.work[0].stream, 7U);
  EXPECT_EQ(activity.work[1].kind, StreamWorkKind::kCopy);
  EXPECT_EQ(activity.work[1].from, GpuMemoryKind::kDevice);
  EXPECT_EQ(activity.work[1].to, GpuMemoryKind::kPinned);
  EXPECT_EQ(activity.work[1].bytes, 4096);
  EXPECT_EQ(activity.work[1].end_ns, 30);
  EXPECT_EQ(activity.work[2].kind, StreamWorkKind::kSet);
  EXPECT_EQ(activity.work[2].to, GpuMemoryKind::kDevice);
}

TEST_F(ActivityReaderTest, SortsTheRecordsOfAllBuffers) {
  Buffer late, early;
  late.add(kernel("c", 300, 310)).add(kernel("b", 200, 210));
  early.add(kernel("a", 100, 110));
  reader_.read(late.data(), late.bytes());
  reader_.read(early.data(), early.bytes());
  const GpuActivity activity = reader_.take();
  std::vector<Nanoseconds> begins;
  for (const StreamWork& work : activity.work) begins.push_back(work.begin_ns);
  EXPECT_THAT(begins, ElementsAre(100, 200, 300));
}

TEST_F(ActivityReaderTest, CountsRecordsWithoutTimes) {
  const GpuActivity activity =
      read(Buffer().add(kernel("a", 0, 0)).add(kernel("b", 10, 20)).add(kernel("c", 30, 0)));
  EXPECT_EQ(activity.untimed_records, 2U);
  EXPECT_EQ(activity.work.size(), 1U);
}

TEST_F(ActivityReaderTest, KeepsAKernelWithoutACall) {
  const GpuActivity activity = read(Buffer().add(kernel("a", 10, 20, 0)));
  ASSERT_EQ(activity.work.size(), 1U);
  EXPECT_EQ(activity.work[0].correlation, 0U);
}

TEST_F(ActivityReaderTest, KeepsNamesUnchanged) {
  const char* const name = "f<\"quoted\", '\\\\'>(int)\x1b[31m";
  const GpuActivity activity = read(Buffer().add(kernel(name, 10, 20)).add(kernel(nullptr, 20, 30)));
  EXPECT_THAT(activity.names, ElementsAre(name, "unknown kernel"));
}

TEST_F(ActivityReaderTest, StoresANameOnce) {
  const GpuActivity activity = read(Buffer().add(kernel("a", 10, 20)).add(kernel("a", 30, 40)));
  EXPECT_EQ(activity.names.size(), 1U);
  EXPECT_EQ(activity.work[1].name, activity.work[0].name);
}

TEST_F(ActivityReaderTest, ReadsTheCompleteRecordsOfATruncatedBuffer) {
  Buffer buffer;
  buffer.add(kernel("a", 10, 20)).add(kernel("b", 30, 40));
  reader_.read(buffer.data(), buffer.bytes() - 8);
  const GpuActivity activity = reader_.take();
  EXPECT_EQ(activity.work.size(), 1U);
  EXPECT_EQ(activity.unreadable_buffers, 1U);
}

TEST_F(ActivityReaderTest, AnEmptyBufferIsNotBroken) {
  reader_.read(Buffer().data(), 0);
  EXPECT_EQ(reader_.take().unreadable_buffers, 0U);
}

TEST_F(ActivityReaderTest, CountsRecordsOfOtherKinds) {
  CUpti_ActivityName other{};
  other.kind = CUPTI_ACTIVITY_KIND_NAME;
  const GpuActivity activity = read(Buffer().add(other).add(kernel("a", 10, 20)));
  EXPECT_EQ(activity.other_records, 1U);
  EXPECT_EQ(activity.work.size(), 1U);
}

TEST_F(ActivityReaderTest, NamesCallsWithoutTheirVersion) {
  const GpuActivity activity = read(Buffer().add(runtime_call(1, 5, 6)).add(runtime_call(77, 7, 8)));
  ASSERT_EQ(activity.calls.size(), 2U);
  EXPECT_EQ(activity.names[static_cast<std::size_t>(activity.calls[0].name)], "cudaLaunchKernel");
  EXPECT_EQ(activity.names[static_cast<std::size_t>(activity.calls[1].name)], "call 77");
  EXPECT_EQ(activity.calls[0].thread, 99U);
}

TEST_F(ActivityReaderTest, ReadsCausesByCorrelation) {
  CUpti_ActivityExternalCorrelation cause{};
  cause.kind = CUPTI_ACTIVITY_KIND_EXTERNAL_CORRELATION;
  cause.correlationId = 8;
  cause.externalId = 500;
  CUpti_ActivityExternalCorrelation earlier = cause;
  earlier.correlationId = 3;
  const GpuActivity activity = read(Buffer().add(cause).add(earlier));
  ASSERT_EQ(activity.causes.size(), 2U);
  EXPECT_EQ(activity.causes[0].correlation, 3U);
  EXPECT_EQ(activity.causes[1].id, 500U);
}

TEST_F(ActivityReaderTest, ReadsWaitsEventsMemoryAndOverheads) {
  CUpti_ActivitySynchronization2 wait{};
  wait.kind = CUPTI_ACTIVITY_KIND_SYNCHRONIZATION;
  wait.type = CUPTI_ACTIVITY_SYNCHRONIZATION_TYPE_STREAM_WAIT_EVENT;
  wait.start = 10;
  wait.end = 11;
  wait.cudaEventId = 4;
  CUpti_ActivityCudaEvent2 event{};
  event.kind = CUPTI_ACTIVITY_KIND_CUDA_EVENT;
  event.eventId = 4;
  event.streamId = 7;
  CUpti_ActivityMemory4 memory{};
  memory.kind = CUPTI_ACTIVITY_KIND_MEMORY2;
  memory.memoryOperationType = CUPTI_ACTIVITY_MEMORY_OPERATION_TYPE_RELEASE;
  memory.memoryKind = CUPTI_ACTIVITY_MEMORY_KIND_DEVICE;
  memory.bytes = 2048;
  memory.timestamp = 12;
  CUpti_ActivityOverhead3 overhead{};
  overhead.kind = CUPTI_ACTIVITY_KIND_OVERHEAD;
  overhead.overheadKind = CUPTI_ACTIVITY_OVERHEAD_CUPTI_BUFFER_FLUSH;
  overhead.start = 13;
  overhead.end = 20;
  const GpuActivity activity = read(Buffer().add(wait).add(event).add(memory).add(overhead));
  ASSERT_EQ(activity.waits.size(), 1U);
  EXPECT_EQ(activity.waits[0].kind, GpuWaitKind::kStreamForEvent);
  ASSERT_EQ(activity.events.size(), 1U);
  EXPECT_EQ(activity.events[0].event, activity.waits[0].event);
  ASSERT_EQ(activity.memory.size(), 1U);
  EXPECT_EQ(activity.memory[0].bytes, -2048);
  ASSERT_EQ(activity.overheads.size(), 1U);
  EXPECT_EQ(activity.overheads[0].what, "buffer flush");
}

TEST_F(ActivityReaderTest, IsEmptyAfterTake) {
  read(Buffer().add(kernel("a", 10, 20)));
  const GpuActivity activity = read(Buffer().add(kernel("b", 30, 40)));
  EXPECT_THAT(activity.names, ElementsAre("b"));
  EXPECT_EQ(activity.work[0].name, 0);
}

}  // namespace
}  // namespace offprof
