#include "engine/copies/copy_stream.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/resource.h>
#include <unistd.h>

#include <future>
#include <memory>
#include <stdexcept>
#include <vector>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

constexpr Link kNoCap{};

CopyJob job(std::function<void()> copy, std::int64_t tag = 0) {
  return {std::move(copy), CopyDirection::kD2h, 8, tag};
}

std::vector<std::int64_t> tags_of(const std::vector<CopyRecord>& records) {
  std::vector<std::int64_t> tags;
  for (const CopyRecord& record : records) tags.push_back(record.tag);
  return tags;
}

TEST(CopyStream, RunsCopiesInOrder) {
  std::vector<int> made;
  CopyStream stream(kNoCap);
  for (int i = 0; i < 100; ++i) stream.enqueue(job([&made, i] { made.push_back(i); }, i));
  EXPECT_EQ(stream.take_records().size(), 100U);
  std::vector<int> expected(100);
  for (int i = 0; i < 100; ++i) expected[static_cast<std::size_t>(i)] = i;
  EXPECT_EQ(made, expected);
}

TEST(CopyStream, AnEventIsReachedWhenItsCopyIsDone) {
  bool done = false;
  CopyStream stream(kNoCap);
  const CopyStream::Event event = stream.enqueue(job([&done] { done = true; }));
  stream.wait(event);
  EXPECT_TRUE(done);
}

TEST(CopyStream, AnEventDoesNotWaitForLaterCopies) {
  std::promise<void> gate;
  CopyStream stream(kNoCap);
  const CopyStream::Event first = stream.enqueue(job([] {}));
  bool later_done = false;
  stream.enqueue(job([&] {
    gate.get_future().wait();
    later_done = true;
  }));
  stream.wait(first);  // the gate is still shut, so the test would hang if this waited for it
  gate.set_value();
  stream.take_records();
  EXPECT_TRUE(later_done);
}

TEST(CopyStream, AReachedEventStaysReached) {
  CopyStream stream(kNoCap);
  const CopyStream::Event first = stream.enqueue(job([] {}));
  stream.wait(stream.enqueue(job([] {})));
  stream.wait(first);
  stream.wait(first);
}

TEST(CopyStream, FreesTheJobBeforeItsEventIsReached) {
  auto held = std::make_shared<int>(0);
  CopyStream stream(kNoCap);
  stream.wait(stream.enqueue(job([held] {})));
  EXPECT_EQ(held.use_count(), 1);
}

TEST(CopyStream, WaitRethrowsTheExceptionOfItsCopy) {
  CopyStream stream(kNoCap);
  const CopyStream::Event before = stream.enqueue(job([] {}));
  const CopyStream::Event failing = stream.enqueue(job([] { throw std::runtime_error("no copy"); }));
  int made = 0;
  const CopyStream::Event after = stream.enqueue(job([&made] { ++made; }));
  EXPECT_THROW(stream.wait(failing), std::runtime_error);
  EXPECT_THROW(stream.wait(failing), std::runtime_error) << "the second wait must throw too";
  EXPECT_NO_THROW(stream.wait(before));
  EXPECT_NO_THROW(stream.wait(after));
  EXPECT_EQ(made, 1);
}

TEST(CopyStream, TakingRecordsForgetsFailures) {
  CopyStream stream(kNoCap);
  const CopyStream::Event failing = stream.enqueue(job([] { throw std::runtime_error("no copy"); }, 3));
  EXPECT_THAT(tags_of(stream.take_records()), ElementsAre(3));
  EXPECT_NO_THROW(stream.wait(failing));
}

TEST(CopyStream, DestructorFinishesTheQueueAfterAFailedCopy) {
  int made = 0;
  {
    CopyStream stream(kNoCap);
    stream.enqueue(job([] { throw std::runtime_error("no copy"); }));
    stream.enqueue(job([&made] { ++made; }));
  }
  EXPECT_EQ(made, 1);
}

/// Without address space there is no stack for a thread, unless a thread that has ended left its own.
TEST(CopyStream, ReportsThatTheMachineHasNoThreadLeft) {
#if defined(__SANITIZE_ADDRESS__) || defined(__SANITIZE_THREAD__)
  GTEST_SKIP() << "sanitizers take addresses themselves, and end without them";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a fresh process
  const auto without_addresses = [] {
    const rlimit limit{1, 1};
    setrlimit(RLIMIT_AS, &limit);
    try {
      const CopyStream stream(kNoCap);
    } catch (const Error& error) {
      _exit(error.kind() == ErrorKind::kEnvironment ? 7 : 1);
    }
  };
  EXPECT_EXIT(without_addresses(), testing::ExitedWithCode(7), "");
}

TEST(CopyStream, RecordsEachCopy) {
  CopyStream stream(kNoCap);
  stream.enqueue({[] {}, CopyDirection::kH2d, 4096, 7});
  const std::vector<CopyRecord> records = stream.take_records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].direction, CopyDirection::kH2d);
  EXPECT_EQ(records[0].bytes, 4096);
  EXPECT_EQ(records[0].tag, 7);
}

TEST(CopyStream, RecordsNeverOverlap) {
  CopyStream stream(kNoCap);
  for (int i = 0; i < 20; ++i) stream.enqueue(job([] {}));
  Nanoseconds last_end = 0;
  for (const CopyRecord& record : stream.take_records()) {
    EXPECT_GE(record.begin_ns, last_end);
    EXPECT_GE(record.end_ns, record.begin_ns);
    last_end = record.end_ns;
  }
}

TEST(CopyStream, ReturnsEachRecordOnce) {
  CopyStream stream(kNoCap);
  stream.enqueue(job([] {}, 1));
  EXPECT_THAT(tags_of(stream.take_records()), ElementsAre(1));
  EXPECT_THAT(stream.take_records(), IsEmpty());
  stream.enqueue(job([] {}, 2));
  EXPECT_THAT(tags_of(stream.take_records()), ElementsAre(2));
}

TEST(CopyStream, DestructorFinishesTheQueue) {
  std::promise<void> gate;
  int made = 0;
  {
    CopyStream stream(kNoCap);
    stream.enqueue(job([&gate] { gate.get_future().wait(); }));
    for (int i = 0; i < 10; ++i) stream.enqueue(job([&made] { ++made; }));
    gate.set_value();
  }
  EXPECT_EQ(made, 10);
}

TEST(CopyStream, MeasuresTheRoundTripBetweenThreads) {
  CopyStream stream(kNoCap);
  EXPECT_GT(stream.time_round_trip(), 0);
  EXPECT_THAT(stream.take_records(), IsEmpty());
}

TEST(CopyStream, ACappedCopyTakesAtLeastTheTimeOfTheLink) {
  constexpr Link kCap{{0, 0}, {1e9, 500}};
  CopyStream stream(kCap);
  stream.enqueue({[] {}, CopyDirection::kH2d, 1000, 0});
  const CopyRecord record = stream.take_records().front();
  EXPECT_GE(record.end_ns - record.begin_ns,
            1500);  // 500 + 1000 B at 1 B/ns; no upper bound: the machine may be busy
}

}  // namespace
}  // namespace offprof
