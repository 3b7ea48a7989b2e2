#include "engine/devices/virtual_gpu/races/stream_races.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <string>

#include "tests/support/stream_race_fixture.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::FieldsAre;
using testing::IsEmpty;

/// Tests of events, streams, the host, and the memory of the checker.
class StreamRaceEventsTest : public StreamRaceTest {
 protected:
  /// Returns the largest number of remembered copies while the compute stream waits for each of 20000 copies.
  std::size_t most_remembered_of_ordered_copies() {
    std::size_t most = 0;
    for (int step = 0; step < 20000; ++step) {
      const Bytes index = step % 8;
      order_.kernel(kCompute, "gelu");
      hand_out(index);
      follow(kOut, kCompute);
      order_.copy(kOut, {piece(index) + step % 512, MemoryPlace::kPinned},
                  {block(index) + step % 512, MemoryPlace::kDevice}, 256 + step % 100);
      follow(kCompute, kOut);
      give_back(index);
      most = std::max(most, order_.remembered());
    }
    return most;
  }
};

// ---- Events.

TEST_F(StreamRaceEventsTest, ReportsAWaitForAnEventThatWasNeverRecorded) {
  order_.set_op("aten::mul");
  order_.stream_waits(kOut, event_);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("an event is used before it was recorded", "event creation",
                                               "event wait in aten::mul on stream 1")));
}

TEST_F(StreamRaceEventsTest, ReportsAHostWaitForAnEventThatWasNeverRecorded) {
  order_.event_synchronised(event_);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("an event is used before it was recorded", "event creation",
                                               "event synchronisation")));
}

TEST_F(StreamRaceEventsTest, ReportsATimeQueryOfAnEventThatWasNeverRecorded) {
  order_.event_time_asked(event_);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("an event is used before it was recorded", "event creation",
                                               "event time query")));
}

TEST_F(StreamRaceEventsTest, ARecreatedEventIsNotRecorded) {
  order_.event_recorded(event_, kCompute);
  order_.event_destroyed(event_);
  order_.event_created(event_);
  order_.stream_waits(kOut, event_);
  EXPECT_EQ(hazards().size(), 1);
}

TEST_F(StreamRaceEventsTest, AWaitHoldsAfterItsEventIsRecordedAgainOrDestroyed) {
  start_copy_out(0, 0);
  follow(kCompute, kOut);
  order_.event_recorded(event_, kOther);
  order_.event_destroyed(event_);
  give_back(0);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceEventsTest, AnEventRefersOnlyToItsLastRecord) {
  start_copy_out(0, 0);
  order_.event_recorded(event_, kOut);
  order_.event_recorded(event_, kOther);
  order_.stream_waits(kCompute, event_);
  give_back(0);
  EXPECT_EQ(hazards().size(), 1);
}

// ---- Waits that order nothing.

TEST_F(StreamRaceEventsTest, ReportsASecondWaitForTheSameRecord) {
  order_.set_op("aten::mul");
  order_.event_recorded(event_, kCompute);
  order_.set_op("");
  order_.stream_waits(kOut, event_);
  order_.stream_waits(kOut, event_);
  EXPECT_THAT(hazards(),
              ElementsAre(FieldsAre("a wait orders nothing", "event record in aten::mul on stream 0",
                                    "event wait on stream 1")));
}

TEST_F(StreamRaceEventsTest, ReportsAWaitForAnOlderRecord) {
  order_.event_recorded(event_, kOut);
  order_.event_recorded(other_event_, kOut);
  order_.stream_waits(kCompute, other_event_);
  order_.stream_waits(kCompute, event_);
  EXPECT_EQ(hazards().size(), 1);
}

TEST_F(StreamRaceEventsTest, ReportsAWaitMadeRedundantByAnotherStreamsWait) {
  order_.event_recorded(event_, kCompute);
  order_.stream_waits(kOut, event_);
  order_.event_recorded(other_event_, kOut);
  order_.stream_waits(kIn, other_event_);
  order_.stream_waits(kIn, event_);
  EXPECT_EQ(hazards().size(), 1);
}

TEST_F(StreamRaceEventsTest, ReportsAWaitForTheStreamsOwnEvent) {
  order_.event_recorded(event_, kCompute);
  order_.stream_waits(kCompute, event_);
  EXPECT_EQ(hazards().size(), 1);
}

TEST_F(StreamRaceEventsTest, AWaitForANewRecordIsNeverRedundant) {
  follow(kOut, kCompute);
  follow(kOut, kCompute);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceEventsTest, OrderByTheHostDoesNotMakeAWaitRedundant) {
  order_.event_recorded(event_, kOut);
  order_.device_synchronised();
  order_.stream_waits(kCompute, event_);
  EXPECT_THAT(hazards(), IsEmpty());
}

// ---- Streams and the host.

TEST_F(StreamRaceEventsTest, BlockingStreamsAndTheLegacyDefaultStreamWaitForEachOther) {
  order_.stream_created(kOther, StreamKind::kBlocking);
  start_copy_out(0, 0);
  follow(kOther, kOut);
  hand_out(1);
  order_.kernel(kCompute, "gelu");
  copy_out(1, 1, kOther);
  order_.kernel(kCompute, "matmul");
  give_back(1);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceEventsTest, ABlockHandedOutOnABlockingStreamIsOrderedAfterTheLegacyDefaultStream) {
  order_.stream_created(kOther, StreamKind::kBlocking);
  order_.kernel(kOther, "early");
  start_copy_out(0, 0);
  follow(kCompute, kOut);
  give_back(0);
  hand_out(0, kOther);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceEventsTest, BlockingStreamsDoNotWaitForEachOther) {
  order_.stream_created(kOut, StreamKind::kBlocking);
  order_.stream_created(kOther, StreamKind::kBlocking);
  hand_out(0, kOther);
  order_.kernel(kOther, "gelu");
  copy_out(0, 0);
  EXPECT_EQ(hazards().size(), 1);
}

TEST_F(StreamRaceEventsTest, AReusedHandleIsAnotherStream) {
  start_copy_out(0, 0);
  order_.stream_destroyed(kOut);
  order_.stream_created(kOut, StreamKind::kNonBlocking);
  hand_out(1, kOut);
  copy_out(0, 1);
  EXPECT_THAT(hazards(), ElementsAre(FieldsAre("two copies of the same memory are not ordered",
                                               "D2H copy of 1024 bytes on stream 1",
                                               "D2H copy of 1024 bytes on stream 2")));
}

TEST_F(StreamRaceEventsTest, OrdersLaterCallsAfterWhatTheHostHasSeen) {
  hand_out(0);
  order_.kernel(kCompute, "gelu");
  order_.stream_synchronised(kCompute);
  copy_out(0, 0);
  order_.device_synchronised();
  copy_out(0, 0, kOther);
  EXPECT_THAT(hazards(), IsEmpty());
}

// ---- Reports and memory.

TEST_F(StreamRaceEventsTest, ReportsEachPairOfSitesOnce) {
  for (int i = 0; i < 100; ++i) {
    hand_out(0);
    order_.kernel(kCompute, "gelu");
    copy_out(0, 0);
    order_.device_synchronised();
  }
  EXPECT_EQ(hazards().size(), 1);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceEventsTest, ReportsTheSameRaceInAnotherOperator) {
  for (const char* op : {"aten::gelu", "aten::mul"}) {
    const std::string text = op;  // destroyed right after the call
    order_.set_op(text);
    hand_out(0);
    order_.kernel(kCompute, "elementwise");
    copy_out(0, 0);
    order_.device_synchronised();
  }
  EXPECT_EQ(hazards().size(), 2);
}

TEST_F(StreamRaceEventsTest, ForgetsOrderedCopies) {
  EXPECT_LE(most_remembered_of_ordered_copies(), 600);
  EXPECT_THAT(hazards(), IsEmpty());
}

TEST_F(StreamRaceEventsTest, ForgetsOrderedCopiesDespiteADestroyedStream) {
  order_.stream_created(kOther, StreamKind::kNonBlocking);
  order_.kernel(kOther, "once");
  order_.stream_destroyed(kOther);
  EXPECT_LE(most_remembered_of_ordered_copies(), 600);
}

TEST_F(StreamRaceEventsTest, ForgetsOrderedCopiesDespiteAnIdleStream) {
  order_.kernel(kOther, "once");
  std::size_t most = 0;
  for (int step = 0; step < 5000; ++step) {
    copy_out(step % 8, step % 8);
    most = std::max(most, order_.remembered());
  }
  EXPECT_LE(most, 16);
}

}  // namespace
}  // namespace offprof
