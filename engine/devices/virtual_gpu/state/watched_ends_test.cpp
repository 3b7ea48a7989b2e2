#include "engine/devices/virtual_gpu/state/watched_ends.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

const std::thread::id kWatchdog = std::this_thread::get_id();
constexpr Nanoseconds kPeriod = WatchedEnds::kPeriod;
constexpr WatchedEnds::Clock::time_point kNow{};
const int handles[4] = {};
const StreamId kStream = &handles[0], kOtherStream = &handles[1];
const EventId kEnd = &handles[2], kOther = &handles[3];

WatchedEnds of_an_end_reached_at(Nanoseconds time) {
  WatchedEnds ends;
  ends.given(kStream);
  ends.event_recorded(kOther, kOtherStream, time, kNow);
  ends.event_recorded(kEnd, kStream, time, kNow);
  return ends;
}

TEST(WatchedEnds, HidesAnEndUntilTheNextLook) {
  WatchedEnds ends = of_an_end_reached_at(kPeriod / 2);
  EXPECT_TRUE(ends.hides(kEnd, kWatchdog, kNow));
  ends.look_periodically(kPeriod - 1);
  EXPECT_TRUE(ends.has_looked());
  EXPECT_TRUE(ends.hides(kEnd, kWatchdog, kNow));
  ends.look_periodically(kPeriod);
  EXPECT_FALSE(ends.has_looked());
  EXPECT_FALSE(ends.hides(kEnd, kWatchdog, kNow));
  EXPECT_FALSE(ends.has_looked());  // it has to tell PyTorch
  EXPECT_TRUE(ends.has_told(kWatchdog));
  EXPECT_TRUE(ends.has_looked());
  EXPECT_FALSE(ends.has_told(kWatchdog));
}

TEST(WatchedEnds, HidesAnEndThatWasNotReachedWhenTheWatchdogLooked) {
  WatchedEnds ends = of_an_end_reached_at(kPeriod + 1);
  ends.look_periodically(2 * kPeriod - 1);
  EXPECT_TRUE(ends.has_looked());
  EXPECT_TRUE(ends.hides(kEnd, kWatchdog, kNow));
}

TEST(WatchedEnds, ShowsWhatIsReachedToAnExtraLook) {
  WatchedEnds ends = of_an_end_reached_at(kPeriod / 2);
  ends.look(kPeriod / 2 - 1);
  EXPECT_TRUE(ends.hides(kEnd, kWatchdog, kNow));
  ends.look(kPeriod / 2);
  ends.look_periodically(kPeriod / 2);  // an earlier time
  EXPECT_FALSE(ends.hides(kEnd, kWatchdog, kNow));
}

TEST(WatchedEnds, HidesNoOtherEvents) {
  WatchedEnds ends = of_an_end_reached_at(kPeriod);
  EXPECT_FALSE(ends.hides(kOther, kWatchdog, kNow));
  ends.event_recorded(kEnd, kStream, kPeriod, kNow);  // again, for something else
  EXPECT_FALSE(ends.hides(kEnd, kWatchdog, kNow));
}

TEST(WatchedEnds, HidesNoEndsOfCollectivesOnAStreamThatComputes) {
  WatchedEnds ends;
  ends.computed_on(kStream);
  ends.computed_on(kOtherStream);
  ends.given(kStream);
  ends.event_recorded(kEnd, kStream, kPeriod, kNow);
  EXPECT_FALSE(ends.hides(kEnd, kWatchdog, kNow));
}

TEST(WatchedEnds, ForgetsDestroyedEvents) {
  WatchedEnds ends = of_an_end_reached_at(0);
  EXPECT_FALSE(ends.has_looked());
  ends.event_destroyed(kEnd);
  EXPECT_TRUE(ends.has_looked());
}

TEST(WatchedEnds, ForgetsWhatTheProgramHasWaitedFor) {
  WatchedEnds ends = of_an_end_reached_at(0);
  EXPECT_FALSE(ends.has_looked());
  ends.event_waited_for(kEnd);
  EXPECT_TRUE(ends.has_looked());
}

TEST(WatchedEnds, HidesNothingForLong) {
  WatchedEnds ends = of_an_end_reached_at(kPeriod);
  EXPECT_TRUE(ends.hides(kEnd, kWatchdog, kNow + WatchedEnds::kMostHidden / 2));
  EXPECT_FALSE(ends.hides(kEnd, kWatchdog, kNow + WatchedEnds::kMostHidden));
}

TEST(WatchedEnds, HidesNothingOnceThereWasNoWatchdog) {
  WatchedEnds ends = of_an_end_reached_at(0);
  ends.give_up();
  ends.given(kStream);
  ends.event_recorded(kEnd, kStream, 0, kNow);
  EXPECT_TRUE(ends.has_looked());
}

TEST(WatchedEnds, GoesOnAfterAWatchdogWasLate) {
  WatchedEnds ends = of_an_end_reached_at(0);
  EXPECT_FALSE(ends.hides(kEnd, kWatchdog, kNow));
  EXPECT_TRUE(ends.has_told(kWatchdog));
  ends.give_up();
  ends.given(kStream);
  ends.event_recorded(kEnd, kStream, kPeriod, kNow);
  EXPECT_TRUE(ends.hides(kEnd, kWatchdog, kNow));
}

TEST(WatchedEnds, ShowsAll) {
  WatchedEnds ends = of_an_end_reached_at(kPeriod);
  ends.show_all();
  EXPECT_FALSE(ends.hides(kEnd, kWatchdog, kNow));
}

}  // namespace
}  // namespace offprof
