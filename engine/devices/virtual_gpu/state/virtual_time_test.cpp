#include "engine/devices/virtual_gpu/state/virtual_time.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

// The link moves a byte per nanosecond out and half of that in.
constexpr Link kLink{.d2h = {.bytes_per_second = 1e9, .latency_ns = 10},
                     .h2d = {.bytes_per_second = 5e8, .latency_ns = 20}};

StreamId id(std::uintptr_t number) {
  return reinterpret_cast<StreamId>(number);
}

struct VirtualTimeTest : testing::Test {
  VirtualTimeTest() {
    for (const StreamId stream : {a, b}) time.create_stream(stream, StreamKind::kNonBlocking);
    time.create_event(event);
  }

  StreamId a = id(1), b = id(2);
  EventId event = id(3);
  VirtualTime time{kLink};
};

TEST_F(VirtualTimeTest, AKernelBeginsWhenItsStreamIsIdle) {
  EXPECT_EQ(time.run(a, 100), (TimeSpan{0, 100}));
  EXPECT_EQ(time.run(a, 50), (TimeSpan{100, 150}));
}

TEST_F(VirtualTimeTest, AKernelBeginsAfterItsLaunch) {
  time.advance_host(70);
  EXPECT_EQ(time.run(a, 100), (TimeSpan{70, 170}));
}

TEST_F(VirtualTimeTest, StreamsRunConcurrently) {
  time.run(a, 100);
  EXPECT_EQ(time.run(b, 30), (TimeSpan{0, 30}));
}

TEST_F(VirtualTimeTest, ACopyTakesLatencyPlusBytesOverBandwidth) {
  EXPECT_EQ(time.copy(a, CopyDirection::kD2h, 1000), (TimeSpan{0, 1010}));
  EXPECT_EQ(time.copy(b, CopyDirection::kH2d, 1000), (TimeSpan{0, 2020}));
}

TEST_F(VirtualTimeTest, PageableMemoryIsCopiedByTheProcessor) {
  const VirtualTime fast({.d2h = {.bytes_per_second = 48e9}, .h2d = {.bytes_per_second = 36e9}});
  EXPECT_EQ(fast.pinned_bytes_like(CopyDirection::kD2h, 1000), 4000);
  EXPECT_EQ(fast.pinned_bytes_like(CopyDirection::kH2d, 1000), 3000);
  EXPECT_EQ(time.pinned_bytes_like(CopyDirection::kD2h, 1000), 1000);  // a slow link limits
}

TEST_F(VirtualTimeTest, RunsOneCopyAtATimePerDirection) {
  time.copy(a, CopyDirection::kD2h, 100);
  EXPECT_EQ(time.copy(b, CopyDirection::kD2h, 100), (TimeSpan{110, 220}));
  EXPECT_EQ(time.copy(b, CopyDirection::kH2d, 100), (TimeSpan{220, 440}));
}

TEST_F(VirtualTimeTest, ACopyTakesTimeFromTheComputeStream) {
  Link link = kLink;
  link.d2h.compute_ns_per_byte = 0.1;
  link.h2d.compute_ns_per_byte = 0.2;
  time.restart(link);
  time.run(nullptr, 100);
  time.copy(a, CopyDirection::kD2h, 100);
  time.copy(b, CopyDirection::kH2d, 100);
  EXPECT_EQ(time.run(nullptr, 50), (TimeSpan{130, 180}));
  EXPECT_EQ(time.take_work().busy_ns, 150);
  EXPECT_EQ(time.take_compute_loss(), 30);
  EXPECT_EQ(time.take_compute_loss(), 0);
}

TEST_F(VirtualTimeTest, ACopyTakesNoTimeFromTheComputeStreamThatMakesItOrIsIdle) {
  Link link = kLink;
  link.d2h.compute_ns_per_byte = 0.1;
  time.restart(link);
  EXPECT_EQ(time.copy(nullptr, CopyDirection::kD2h, 100), (TimeSpan{0, 110}));
  EXPECT_EQ(time.take_compute_loss(), 0);
  time.copy(a, CopyDirection::kD2h, 100);
  time.advance_host(500);
  EXPECT_EQ(time.run(nullptr, 50), (TimeSpan{500, 550}));
}

TEST_F(VirtualTimeTest, AWaitForAnotherStreamIsWorkOfTheComputeStream) {
  time.run(nullptr, 100);
  time.run(a, 250);
  time.record(event, a);
  time.wait(nullptr, event);
  time.wait(nullptr, event);  // it has waited already
  time.run(nullptr, 30);
  EXPECT_EQ(time.take_work(), (Work{0, 280, 280, Work::kNoWait, 280}));
  EXPECT_EQ(time.stream_time(nullptr), 280);
  EXPECT_EQ(time.exposed_collectives(), 0);
}

TEST_F(VirtualTimeTest, TheComputeStreamIsIdleWhileItWaitsForACopy) {
  time.copy(a, CopyDirection::kD2h, 90);
  time.record(event, a);
  time.wait(nullptr, event);
  EXPECT_EQ(time.take_work(), (Work{0, 100, 100, Work::kNoWait, 0}));
}

TEST_F(VirtualTimeTest, CollectivesAreExposedWhereTheComputeStreamRunsOrAwaitsThem) {
  time.run(a, 250);
  time.note_collective(a, 250);
  time.run(nullptr, 100);
  EXPECT_EQ(time.exposed_collectives(), 0);
  time.record(event, a);
  time.wait(b, event);  // a stream between the two
  time.record(event, b);
  time.wait(nullptr, event);
  EXPECT_EQ(time.exposed_collectives(), 150);
  time.run(nullptr, 20);
  time.note_collective(nullptr, 20);
  EXPECT_EQ(time.exposed_collectives(), 170);
}

TEST_F(VirtualTimeTest, ACopyOnTheComputeStreamIsWorkOfThatStream) {
  time.advance_host(5);
  time.copy(nullptr, CopyDirection::kH2d, 1000);
  EXPECT_EQ(time.take_work(), (Work{5, 2020, 2025, Work::kNoWait, 2020}));
  time.copy(a, CopyDirection::kH2d, 1000);
  EXPECT_EQ(time.take_work(), Work{});
  EXPECT_EQ(time.take_side_work(), (Work{5, 0, 5}));
}

TEST_F(VirtualTimeTest, BeginsWorkAfterTheAwaitedEvent) {
  time.run(a, 100);
  time.record(event, a);
  time.run(a, 100);
  time.wait(b, event);
  EXPECT_EQ(time.run(b, 5), (TimeSpan{100, 105}));
}

TEST_F(VirtualTimeTest, WaitsForTheLastRecordBeforeTheWait) {
  time.run(a, 100);
  time.record(event, a);
  time.wait(b, event);
  time.run(a, 100);
  time.record(event, a);
  EXPECT_EQ(time.run(b, 5), (TimeSpan{100, 105}));
  EXPECT_EQ(time.event_time(event), 200);
}

TEST_F(VirtualTimeTest, DoesNotWaitForAnEventThatWasNeverRecorded) {
  time.run(a, 100);
  time.wait(b, event);
  EXPECT_EQ(time.run(b, 5), (TimeSpan{0, 5}));
  EXPECT_FALSE(time.event_time(event).has_value());
  EXPECT_TRUE(time.is_reached(event));
}

TEST_F(VirtualTimeTest, RecordsAnIdleStreamAtTheHostTime) {
  time.advance_host(40);
  time.record(event, a);
  EXPECT_EQ(time.event_time(event), 40);
}

TEST_F(VirtualTimeTest, AnEventIsReachedWhenTheHostClockReachesIt) {
  time.run(a, 100);
  time.record(event, a);
  time.advance_host(99);
  EXPECT_FALSE(time.is_reached(event));
  EXPECT_FALSE(time.is_done(a));
  time.advance_host(1);
  EXPECT_TRUE(time.is_reached(event));
  EXPECT_TRUE(time.is_done(a));
}

TEST_F(VirtualTimeTest, SynchronisationAdvancesTheHost) {
  time.run(a, 100);
  time.record(event, a);
  time.run(a, 100);
  time.run(b, 500);
  time.synchronise_event(event);
  EXPECT_EQ(time.host_time(), 100);
  time.synchronise_stream(a);
  EXPECT_EQ(time.host_time(), 200);
  time.synchronise_stream(a);
  EXPECT_EQ(time.host_time(), 200);
  time.synchronise_device();
  EXPECT_EQ(time.host_time(), 500);
}

TEST_F(VirtualTimeTest, WaitsForTheWorkOfADestroyedStream) {
  time.run(a, 100);
  time.destroy_stream(a);
  time.synchronise_device();
  EXPECT_EQ(time.host_time(), 100);
}

TEST_F(VirtualTimeTest, OrdersTheDefaultStreamOnlyWithBlockingStreams) {
  const StreamId blocking = id(4);
  time.create_stream(blocking, StreamKind::kBlocking);
  time.run(blocking, 100);
  time.run(a, 300);
  EXPECT_EQ(time.run(nullptr, 50), (TimeSpan{100, 150}));
  EXPECT_EQ(time.run(blocking, 10), (TimeSpan{150, 160}));
  EXPECT_EQ(time.run(b, 10), (TimeSpan{0, 10}));
}

TEST_F(VirtualTimeTest, RestartsAllClocks) {
  time.run(a, 100);
  time.record(event, a);
  time.copy(a, CopyDirection::kD2h, 1000);
  time.synchronise_device();
  time.restart(kLink);
  EXPECT_EQ(time.host_time(), 0);
  EXPECT_FALSE(time.event_time(event).has_value());
  EXPECT_EQ(time.copy(a, CopyDirection::kD2h, 90), (TimeSpan{0, 100}));
}

}  // namespace
}  // namespace offprof
