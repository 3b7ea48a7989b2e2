#include "simulator/clock/virtual_clock.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

/// A byte takes one nanosecond out, two in.
constexpr Link kLink{{1e9, 0}, {0.5e9, 0}};

TEST(VirtualClock, ComputeAdvancesTheClock) {
  VirtualClock clock(kLink, false);
  clock.compute(30);
  clock.compute(12);
  EXPECT_EQ(clock.now(), 42);
  EXPECT_EQ(clock.exposed_ns(), 0);
}

constexpr auto kBesideHost = VirtualClock::Computes::kBesideHost;
/// A kernel that takes 10 ns to launch and 100 ns to run.
constexpr Work kKernel{10, 100, 110, Work::kNoWait, 100};

TEST(VirtualClock, BesideTheHostEngineCallsTakeOnlyTheHostsTime) {
  const EngineCosts costs{.hook_ns = 30, .event_ns = 20};
  VirtualClock clock({{1e9, 0}, {1e9, 0}, /*launch_ns=*/15}, false, kBesideHost, costs);
  clock.run(kKernel);
  clock.hook();
  clock.wait(clock.copy_out(0));
  EXPECT_EQ(clock.now(), 110);  // the host is at 10 + 30 + 15 + 20
  clock.run({0, 0, 50, Work::kNoWait, 50});
  EXPECT_EQ(clock.now(), 75 + 50);  // later launches come later
  EXPECT_EQ(clock.exposed_ns(), 0);
}

TEST(VirtualClock, BesideTheHostCopiesSlowTheStreamDown) {
  const EngineCosts costs{.slowdown_ns_per_byte = 0.5};
  VirtualClock clock(kLink, false, kBesideHost, costs);
  clock.run({0, 100, 100, Work::kNoWait, 100});
  clock.copy_out(60);  // from 100 to 160; meanwhile a nanosecond of compute takes 1.5
  clock.run({0, 100, 100, Work::kNoWait, 100});
  EXPECT_EQ(clock.now(), 100 + 60 + (100 - 40));
  EXPECT_EQ(clock.launch_gap_ns(), 0);
}

TEST(VirtualClock, BesideTheHostReloadedDataIsSlowToRead) {
  const EngineCosts costs{.reload_ns_per_byte = 2};
  VirtualClock clock(kLink, false, kBesideHost, costs);
  clock.wait(clock.copy_in(10));
  EXPECT_EQ(clock.exposed_ns(), 20);
  EXPECT_EQ(clock.now(), 20 + 20);
  EXPECT_EQ(clock.launch_gap_ns(), 0);
}

TEST(VirtualClock, ACopyBeginsAtItsRequest) {
  VirtualClock clock(kLink, false);
  clock.compute(30);
  const VirtualClock::Copy copy = clock.copy_out(10);
  EXPECT_EQ(copy.track, Track::kD2h);
  EXPECT_EQ(copy.begin, 30);
  EXPECT_EQ(copy.end, 40);
  EXPECT_EQ(clock.now(), 30);  // the request takes no time
}

TEST(VirtualClock, ACopyTakesTheTimeOfItsDirection) {
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

/// A byte takes one nanosecond in each direction alone; both together have that many bytes per second.
Link link_of_both(double bytes_per_second) {
  Link link{{1e9, 0}, {1e9, 0}};
  link.bidirectional_bytes_per_second = bytes_per_second;
  return link;
}

TEST(VirtualClock, TheLaterOfTwoCopiesThatMeetHasTheRestOfTheLink) {
  VirtualClock clock(link_of_both(1.5e9), false);
  EXPECT_EQ(clock.copy_out(100).end, 100);
  EXPECT_EQ(clock.copy_in(100).end, 100 + 50);  // half as fast until 100
  EXPECT_EQ(clock.copy_out(60).end, 150 + 35);  // half as fast from 100 to 150
  EXPECT_EQ(clock.copy_in(10).end, 150 + 20);   // within the last one
  clock.compute(1000);
  EXPECT_EQ(clock.copy_in(10).end, 1010);
}

TEST(VirtualClock, ALinkThatOneDirectionFillsLetsTheOtherWait) {
  VirtualClock clock(link_of_both(1e9), false);
  clock.copy_out(100);
  EXPECT_EQ(clock.copy_in(10).end, 110);
}

TEST(VirtualClock, ALinkThatIsFastEnoughForBothDirectionsSlowsNone) {
  VirtualClock clock(link_of_both(2e9), false);
  clock.copy_out(100);
  EXPECT_EQ(clock.copy_in(100).end, 100);
}

TEST(VirtualClock, CopiesTakeTimeFromTheComputeStream) {
  const Link link{{1e9, 0, 0, 0.1}, {1e9, 0, 0, 0.2}};
  VirtualClock clock(link, false, VirtualClock::Computes::kBesideHost);
  clock.run({0, 100, 100, Work::kNoWait, 100});
  clock.copy_out(100);
  const VirtualClock::Copy in = clock.copy_in(100);
  clock.run({0, 50, 50, Work::kNoWait, 50});
  EXPECT_EQ(clock.now(), 180);
  EXPECT_EQ(clock.launch_gap_ns(), 0) << "the stream is busy";
  clock.wait(in);
  EXPECT_EQ(clock.now(), in.end) << "a wait for the copy covers the loss";
}

constexpr Link kLinkWithDisk{{1e9, 0}, {0.5e9, 0}, 0, false, {{0.1e9, 5}, {0.2e9, 0}}};

TEST(VirtualClock, TheDiskWritesAndReadsBesideTheLink) {
  VirtualClock clock(kLinkWithDisk, false);
  const VirtualClock::Copy write = clock.write_disk(10, clock.copy_out(10).end);
  EXPECT_EQ(write.begin, 10);
  EXPECT_EQ(write.end, 10 + 5 + 100);
  EXPECT_EQ(clock.write_disk(10, 20).begin, write.end);
  EXPECT_EQ(clock.read_disk(10).end, 50);
  EXPECT_EQ(clock.now(), 0);
}

TEST(VirtualClock, ACopyInWaitsOnItsStreamForTheRead) {
  VirtualClock clock(kLinkWithDisk, false);
  const VirtualClock::Copy copy = clock.copy_in(10, clock.read_disk(10).end);
  EXPECT_EQ(copy.transfer, 50);
  const VirtualClock::Wait wait = clock.wait(copy);
  EXPECT_EQ(wait.for_disk, 50);
  EXPECT_EQ(wait.for_link, 0);
  EXPECT_EQ(wait.for_transfer, 20);
}

TEST(VirtualClock, AWaitForTheDiskStallsComputeOnlyIfTheHostComputes) {
  VirtualClock clock(kLinkWithDisk, false);
  EXPECT_EQ(clock.wait_for_disk(clock.read_disk(10)), 50);
  EXPECT_EQ(clock.exposed_ns(), 50);
  VirtualClock beside(kLinkWithDisk, false, VirtualClock::Computes::kBesideHost);
  EXPECT_EQ(beside.wait_for_disk(beside.read_disk(10)), 0);
  EXPECT_EQ(beside.exposed_ns(), 0);
  EXPECT_EQ(beside.launch_gap_ns(), 50);
}

TEST(VirtualClock, DirectionsRunConcurrently) {
  VirtualClock clock(kLink, false);
  clock.copy_out(10);
  EXPECT_EQ(clock.copy_in(10).begin, 0);
}

TEST(VirtualClock, OverASharedLinkDirectionsFollowEachOther) {
  VirtualClock clock({{1e9, 0}, {0.5e9, 0}, 0, true}, false);
  clock.copy_out(10);
  const VirtualClock::Copy in = clock.copy_in(10);
  EXPECT_EQ(in.transfer, 10);
  EXPECT_EQ(in.end, 30);
  EXPECT_EQ(clock.copy_out(5).transfer, 30);
  EXPECT_EQ(clock.d2h_busy_ns(), 15);
  EXPECT_EQ(clock.h2d_busy_ns(), 20);
}

TEST(VirtualClock, OneSideStreamCarriesBothDirections) {
  VirtualClock clock(kLink, true);
  clock.copy_out(10);
  const VirtualClock::Copy in = clock.copy_in(10);
  EXPECT_EQ(in.track, Track::kH2d);
  EXPECT_EQ(in.begin, 10);
  EXPECT_EQ(clock.copy_out(1).begin, 30);
}

TEST(VirtualClock, AWaitLastsUntilTheCopyIsDone) {
  VirtualClock clock(kLink, false);
  const VirtualClock::Copy copy = clock.copy_out(10);
  clock.compute(4);
  EXPECT_EQ(clock.wait(copy).total(), 6);
  EXPECT_EQ(clock.now(), 10);
  EXPECT_EQ(clock.exposed_ns(), 6);
}

TEST(VirtualClock, AWaitForACompletedCopyTakesNoTime) {
  VirtualClock clock(kLink, false);
  const VirtualClock::Copy copy = clock.copy_out(10);
  clock.compute(11);
  EXPECT_EQ(clock.wait(copy).total(), 0);
  EXPECT_EQ(clock.now(), 11);
}

TEST(VirtualClock, CountsTheBusyTimeOfEachDirection) {
  VirtualClock clock(kLink, true);
  clock.copy_out(10);
  clock.copy_out(5);
  clock.copy_in(10);
  EXPECT_EQ(clock.d2h_busy_ns(), 15);
  EXPECT_EQ(clock.h2d_busy_ns(), 20);
}

// --- A device that computes beside the host ---

constexpr Link kGpuLink{{1e9, 0}, {1e9, 0}, 5};  // a request takes 5 ns of the host's time

TEST(VirtualClock, TheHostRunsAheadOfTheComputeStream) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.run({5, 100, 105});
  clock.run({5, 100, 105});
  EXPECT_EQ(clock.now(), 205);
  const VirtualClock::Copy copy = clock.copy_out(10);
  EXPECT_EQ(copy.begin, 205);  // after the stream's work, though the host requested it at 15
  EXPECT_EQ(copy.end, 215);
  EXPECT_EQ(clock.now(), 205);
}

TEST(VirtualClock, ACopyBeginsAfterTheHostsRequest) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  const VirtualClock::Copy copy = clock.copy_out(10);
  EXPECT_EQ(copy.end, 15);
  EXPECT_EQ(clock.d2h_busy_ns(), 15);
}

TEST(VirtualClock, AWaitBlocksTheStreamAndNotTheHost) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  const VirtualClock::Copy copy = clock.copy_out(100);  // until 105
  EXPECT_EQ(clock.wait(copy).total(), 100);             // from 5, when the host reaches it
  clock.run({50, 1, 51});
  EXPECT_EQ(clock.now(), 106);
  clock.run({60, 1, 61});  // the host has continued meanwhile: 5 + 50 + 60
  EXPECT_EQ(clock.now(), 116);
}

TEST(VirtualClock, GatheringATensorTakesTimeOfTheCopysStreamAndTheHost) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.stage({5, 20, 25});
  const VirtualClock::Copy copy = clock.copy_out(10);
  EXPECT_EQ(copy.begin, 25);
  EXPECT_EQ(copy.end, 35);
  EXPECT_EQ(clock.now(), 10);
}

TEST(VirtualClock, CountsTheStreamsIdleTimeBeforeLaunches) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.run({5, 20, 25, Work::kNoWait, 20});
  EXPECT_EQ(clock.launch_gap_ns(), 5);
  clock.run({5, 20, 25, Work::kNoWait, 20});  // launched while the stream was busy
  EXPECT_EQ(clock.launch_gap_ns(), 5);
  clock.run({100, 1, 101, Work::kNoWait, 1});
  EXPECT_EQ(clock.launch_gap_ns(), 5 + 65);
  EXPECT_EQ(clock.now(), 41 + 70);
}

// --- Other streams of the program ---

using Kind = StreamCommand::Kind;

TEST(VirtualClock, OtherStreamsRunBesideTheComputeStream) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.run(StreamCommand{
      .kind = Kind::kCollective, .stream = 1, .duration_ns = 100, .before = {5, 30, 35, Work::kNoWait, 30}});
  clock.run(StreamCommand{.kind = Kind::kRecord, .stream = 1, .point = 0});  // at 105
  EXPECT_EQ(clock.now(), 35);
  clock.run(StreamCommand{.kind = Kind::kWait, .stream = 0, .point = 0});
  EXPECT_EQ(clock.now(), 105);
  EXPECT_EQ(clock.launch_gap_ns(), 5);  // the stream counts as busy while it waits
}

TEST(VirtualClock, AStallHidesAWaitForAnotherStream) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.run(StreamCommand{.kind = Kind::kKernel, .stream = 1, .duration_ns = 100});
  clock.run(StreamCommand{.kind = Kind::kRecord, .stream = 1, .point = 0});
  clock.wait(clock.copy_out(80));  // until 85
  clock.run(StreamCommand{.kind = Kind::kWait, .stream = 0, .point = 0});
  EXPECT_EQ(clock.now(), 100);
}

TEST(VirtualClock, OtherStreamsWaitForTheComputeStreamAndForEachOther) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.run(StreamCommand{.kind = Kind::kRecord, .stream = 0, .point = 0, .before = {0, 50, 50}});
  clock.run(StreamCommand{.kind = Kind::kWait, .stream = 2, .point = 0});
  clock.run(StreamCommand{.kind = Kind::kKernel, .stream = 2, .duration_ns = 10});  // 50 to 60
  clock.run(StreamCommand{.kind = Kind::kRecord, .stream = 2, .point = 1});
  clock.run(StreamCommand{.kind = Kind::kWait, .stream = 1, .point = 1});
  clock.run(StreamCommand{.kind = Kind::kKernel, .stream = 1, .duration_ns = 10});  // 60 to 70
  clock.run(StreamCommand{.kind = Kind::kRecord, .stream = 1, .point = 2});
  clock.run(StreamCommand{.kind = Kind::kHostWait, .point = 2});
  clock.run(Work{5, 1, 6});
  EXPECT_EQ(clock.now(), 76);
}

TEST(VirtualClock, TheComputeStreamIsIdleWhileItWaitsForCopiesOfOtherStreams) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.run(StreamCommand{.kind = Kind::kCopyIn, .stream = 1, .bytes = 100});
  clock.run(StreamCommand{.kind = Kind::kRecord, .stream = 1, .point = 0});
  clock.run(StreamCommand{.kind = Kind::kWait, .stream = 0, .point = 0});
  EXPECT_EQ(clock.now(), 100);
  EXPECT_EQ(clock.launch_gap_ns(), 100);
}

TEST(VirtualClock, CopiesOfTheProgramShareTheEnginesWithThoseOfSavedTensors) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.copy_out(100);                                                         // 5 to 105
  clock.run(StreamCommand{.kind = Kind::kCopyOut, .stream = 0, .bytes = 10});  // 105 to 115
  EXPECT_EQ(clock.now(), 115);
  EXPECT_EQ(clock.launch_gap_ns(), 105);
  clock.run(StreamCommand{.kind = Kind::kCopyIn, .stream = 1, .bytes = 200});  // 5 to 205
  EXPECT_EQ(clock.copy_in(10).end, 215);
  EXPECT_EQ(clock.d2h_busy_ns(), 105);  // of saved tensors
}

TEST(VirtualClock, TheHostWaitsForTheDeviceWithAllItsStreams) {
  VirtualClock clock(kGpuLink, false, kBesideHost);
  clock.copy_out(100);  // 5 to 105
  clock.run(StreamCommand{.kind = Kind::kKernel, .stream = 1, .duration_ns = 50});
  clock.run(StreamCommand{.kind = Kind::kDeviceWait});
  EXPECT_EQ(clock.now(), 105);
  clock.run(StreamCommand{.kind = Kind::kKernel, .stream = 1, .duration_ns = 50});
  clock.run(StreamCommand{.kind = Kind::kDeviceWait});
  EXPECT_EQ(clock.now(), 155);
}

// --- Costs on a device that computes on the host ---

TEST(VirtualClock, ASleepingStreamBeginsLate) {
  VirtualClock clock({{1e9, 0, 50}, {1e9, 0, 50}}, false);
  EXPECT_EQ(clock.copy_out(100).transfer, 50);
  EXPECT_EQ(clock.copy_out(100).transfer, 150);  // still awake
  EXPECT_EQ(clock.d2h_busy_ns(), 200);
}

TEST(VirtualClock, HooksAndEventsTakeTheProgramsTime) {
  const EngineCosts costs{.hook_ns = 3, .event_ns = 2};
  VirtualClock clock(kLink, false, VirtualClock::Computes::kOnHost, costs);
  const VirtualClock::Copy copy = clock.copy_out(10);
  clock.hook();
  EXPECT_EQ(clock.wait(copy).total(), 5);
  EXPECT_EQ(clock.now(), 10);
}

TEST(VirtualClock, AStandstillAddsLostTimeAfterTheWait) {
  const EngineCosts costs{.standstills = {{100, 30}}};
  VirtualClock clock(kLink, false, VirtualClock::Computes::kOnHost, costs);
  EXPECT_EQ(clock.wait(clock.copy_out(100)).total(), 100);
  EXPECT_EQ(clock.now(), 130);
  EXPECT_EQ(clock.exposed_ns(), 100);
}

TEST(VirtualClock, ALaterWaitNeverEndsEarlier) {
  const EngineCosts costs{.standstills = {{100, 30}}};
  Nanoseconds last = 0;
  for (Nanoseconds late = 0; late < 200; ++late) {
    VirtualClock clock(kLink, false, VirtualClock::Computes::kOnHost, costs);
    const VirtualClock::Copy copy = clock.copy_out(100);
    clock.compute(late);
    clock.wait(copy);
    EXPECT_GE(clock.now(), last);
    last = clock.now();
  }
  EXPECT_EQ(last, 199);
}

TEST(VirtualClock, ACopySlowsConcurrentComputeDownByItsBytes) {
  const EngineCosts costs{.slowdown_ns_per_byte = 0.5};
  VirtualClock clock(kLink, false, VirtualClock::Computes::kOnHost, costs);
  clock.copy_out(30);  // a byte per nanosecond, so compute runs at 1 / 1.5
  clock.compute(10);
  EXPECT_EQ(clock.now(), 15);
  clock.compute(20);  // 10 more during the copy, 10 after it
  EXPECT_EQ(clock.now(), 40);
}

TEST(VirtualClock, ComputeEndsDespiteARoundingRemainder) {
  // With this small a slowdown, the copy ends a rounding error before the compute, at a time so large that
  // adding the rest does not change it.
  const EngineCosts costs{.slowdown_ns_per_byte = 2.3e-16};
  VirtualClock clock(kLink, false, VirtualClock::Computes::kOnHost, costs);
  clock.compute(1'000'000'000'000);
  clock.copy_out(1);
  clock.compute(1);
  EXPECT_EQ(clock.now(), 1'000'000'000'001);
}

TEST(VirtualClock, CopiesOfBothDirectionsSlowDownTogether) {
  const EngineCosts costs{.slowdown_ns_per_byte = 0.5};
  VirtualClock clock({{1e9, 0}, {1e9, 0}}, false, VirtualClock::Computes::kOnHost, costs);
  clock.copy_out(20);
  clock.copy_in(20);
  clock.compute(10);
  EXPECT_EQ(clock.now(), 20);
}

TEST(VirtualClock, ReloadedDataIsNotInTheCache) {
  const EngineCosts costs{.reload_ns_per_byte = 0.5};
  VirtualClock clock({{1e9, 0}, {1e9, 0}}, false, VirtualClock::Computes::kOnHost, costs);
  EXPECT_EQ(clock.wait(clock.copy_out(20)).total(), 20);
  EXPECT_EQ(clock.now(), 20);
  EXPECT_EQ(clock.wait(clock.copy_in(20)).total(), 20);
  EXPECT_EQ(clock.now(), 50);
}

TEST(VirtualClock, AWaitReportsItsTimeForTheLink) {
  VirtualClock clock(kLink, false);
  clock.copy_out(10);
  const VirtualClock::Wait wait = clock.wait(clock.copy_out(5));
  EXPECT_EQ(wait.for_link, 10);
  EXPECT_EQ(wait.for_transfer, 5);
}

}  // namespace
}  // namespace offprof
