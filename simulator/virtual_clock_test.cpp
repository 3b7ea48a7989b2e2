#include "simulator/virtual_clock.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

/// One byte takes a nanosecond out, two in.
constexpr Link kLink{{1e9, 0}, {0.5e9, 0}};

TEST(VirtualClock, ComputePasses) {
  VirtualClock clock(kLink, false);
  clock.compute(30);
  clock.compute(12);
  EXPECT_EQ(clock.now(), 42);
  EXPECT_EQ(clock.exposed_ns(), 0);
}

TEST(VirtualClock, ACopyBeginsWhenItIsAskedFor) {
  VirtualClock clock(kLink, false);
  clock.compute(30);
  const VirtualClock::Copy copy = clock.copy_out(10);
  EXPECT_EQ(copy.track, Track::kD2h);
  EXPECT_EQ(copy.begin, 30);
  EXPECT_EQ(copy.end, 40);
  EXPECT_EQ(clock.now(), 30);  // asking takes no time
}

TEST(VirtualClock, ACopyTakesItsDirectionsTime) {
  VirtualClock clock({{1e9, 7}, {0.5e9, 3}}, false);
  EXPECT_EQ(clock.copy_out(10).end, 17);
  EXPECT_EQ(clock.copy_in(10).end, 23);
}

TEST(VirtualClock, CopiesOfOneDirectionFollowEachOther) {
  VirtualClock clock(kLink, false);
  clock.copy_out(10);
  clock.compute(4);
  const VirtualClock::Copy second = clock.copy_out(5);
  EXPECT_EQ(second.begin, 10);
  EXPECT_EQ(second.end, 15);
}

TEST(VirtualClock, DirectionsRunBesideEachOther) {
  VirtualClock clock(kLink, false);
  clock.copy_out(10);
  EXPECT_EQ(clock.copy_in(10).begin, 0);
}

TEST(VirtualClock, OneSideStreamCarriesBothDirections) {
  VirtualClock clock(kLink, true);
  clock.copy_out(10);
  const VirtualClock::Copy in = clock.copy_in(10);
  EXPECT_EQ(in.track, Track::kH2d);
  EXPECT_EQ(in.begin, 10);
  EXPECT_EQ(clock.copy_out(1).begin, 30);
}

TEST(VirtualClock, AWaitStandsUntilTheCopyIsDone) {
  VirtualClock clock(kLink, false);
  const VirtualClock::Copy copy = clock.copy_out(10);
  clock.compute(4);
  EXPECT_EQ(clock.wait(copy), 6);
  EXPECT_EQ(clock.now(), 10);
  EXPECT_EQ(clock.exposed_ns(), 6);
}

TEST(VirtualClock, AWaitForACopyThatIsDoneTakesNoTime) {
  VirtualClock clock(kLink, false);
  const VirtualClock::Copy copy = clock.copy_out(10);
  clock.compute(11);
  EXPECT_EQ(clock.wait(copy), 0);
  EXPECT_EQ(clock.now(), 11);
}

TEST(VirtualClock, CountsHowLongEachDirectionIsBusy) {
  VirtualClock clock(kLink, true);
  clock.copy_out(10);
  clock.copy_out(5);
  clock.copy_in(10);
  EXPECT_EQ(clock.d2h_busy_ns(), 15);
  EXPECT_EQ(clock.h2d_busy_ns(), 20);
}

}  // namespace
}  // namespace offprof
