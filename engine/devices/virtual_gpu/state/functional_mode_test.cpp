#include "engine/devices/virtual_gpu/state/functional_mode.h"

#include <gtest/gtest.h>

#include <array>
#include <atomic>
#include <numeric>
#include <set>
#include <string>
#include <thread>
#include <vector>

namespace offprof {
namespace {

constexpr std::uint64_t kSeeds = 2000;
constexpr Bytes kBytes = 64;

/// Handles of streams and events: only their addresses matter.
constexpr char kHandles[6] = {};
constexpr StreamId kCompute = nullptr, kOut = &kHandles[0], kIn = &kHandles[1];
constexpr EventId kEvent = &kHandles[3], kOtherEvent = &kHandles[4];

using Memory = std::array<unsigned char, kBytes>;

Memory filled(unsigned char value) {
  Memory memory{};
  memory.fill(value);
  return memory;
}

/// Orders later work of `later` after the work that `earlier` was given so far.
void follow(FunctionalModeWork& work, StreamId later, StreamId earlier, EventId event = kEvent) {
  work.record(event, earlier);
  work.wait(later, event);
}

/// Returns the letters in the order in which three streams without waits wrote them.
std::string letters(FunctionalModeWork work) {
  std::string written;
  for (int i = 0; i < 5; ++i) {
    work.call(kCompute, [&] { written += 'c'; });
    work.call(kOut, [&] { written += 'o'; });
    work.call(kIn, [&] { written += 'i'; });
  }
  work.synchronise_device();
  return written;
}

/// Copies a tensor out, overwrites its memory, and copies it back in. Returns the memory read at the end.
/// `waits` selects which of the four waits are there.
Memory moved_out_and_in(std::uint64_t seed, std::array<bool, 4> waits) {
  FunctionalModeWork work(seed);
  Memory block{}, piece{}, other{}, result{};
  work.set(kCompute, block.data(), 7, kBytes);
  if (waits[0]) follow(work, kOut, kCompute);
  work.copy(kOut, piece.data(), block.data(), kBytes);
  if (waits[1]) follow(work, kCompute, kOut);
  work.set(kCompute, block.data(), 9, kBytes);
  work.copy(kCompute, other.data(), block.data(), kBytes);
  if (waits[2]) follow(work, kIn, kCompute);
  work.copy(kIn, block.data(), piece.data(), kBytes);
  if (waits[3]) follow(work, kCompute, kIn);
  work.copy(kCompute, result.data(), block.data(), kBytes);
  work.synchronise_device();
  return other == filled(9) ? result : filled(0);
}

constexpr std::array<bool, 4> kAllWaits = {true, true, true, true};

TEST(FunctionalModeWork, CopiesAreCorrectUnderEverySeedWithAllWaits) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    ASSERT_EQ(moved_out_and_in(seed, kAllWaits), filled(7)) << "seed " << seed;
  }
}

TEST(FunctionalModeWork, SomeSeedExposesEachMissingWait) {
  for (std::size_t missing = 0; missing < kAllWaits.size(); ++missing) {
    std::array<bool, 4> waits = kAllWaits;
    waits[missing] = false;
    std::uint64_t spoilt = 0;
    for (std::uint64_t seed = 0; seed < kSeeds; ++seed) spoilt += moved_out_and_in(seed, waits) != filled(7);
    EXPECT_GT(spoilt, kSeeds / 100) << "wait " << missing;
  }
}

TEST(FunctionalModeWork, RunsAStreamsOperationsInOrder) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FunctionalModeWork work(seed);
    std::vector<int> out, in;
    for (int i = 0; i < 20; ++i) {
      work.call(kOut, [&out, i] { out.push_back(i); });
      work.call(kIn, [&in, i] { in.push_back(i); });
    }
    work.synchronise_device();
    std::vector<int> counted(20);
    std::iota(counted.begin(), counted.end(), 0);
    ASSERT_EQ(out, counted) << "seed " << seed;
    ASSERT_EQ(in, counted) << "seed " << seed;
  }
}

TEST(FunctionalModeWork, AWaitRefersToTheLastRecordBeforeIt) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FunctionalModeWork work(seed);
    bool is_first_done = false, was_first_done = false;
    work.call(kOut, [&] { is_first_done = true; });
    follow(work, kCompute, kOut);
    work.record(kEvent, kIn);  // the wait stays with the earlier record
    work.event_destroyed(kEvent);
    work.call(kCompute, [&] { was_first_done = is_first_done; });
    work.synchronise_stream(kCompute);
    ASSERT_TRUE(was_first_done) << "seed " << seed;
  }
}

TEST(FunctionalModeWork, AWaitForAnUnrecordedEventDoesNotBlock) {
  FunctionalModeWork work(0, WorkOrder::kLate);
  work.wait(kOut, kEvent);
  bool is_done = false;
  work.call(kOut, [&] { is_done = true; });
  work.synchronise_stream(kOut);
  EXPECT_TRUE(is_done);
  EXPECT_TRUE(work.query_event(kEvent));
}

TEST(FunctionalModeWork, TheSameSeedGivesTheSameOrder) {
  for (std::uint64_t seed = 0; seed < 100; ++seed) {
    EXPECT_EQ(letters(FunctionalModeWork(seed)), letters(FunctionalModeWork(seed)));
  }
}

TEST(FunctionalModeWork, SeedsGiveManyOrders) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 1000; ++seed) orders.insert(letters(FunctionalModeWork(seed)));
  EXPECT_GT(orders.size(), 500);
}

TEST(FunctionalModeWork, SeedsDrawEveryWorkOrder) {
  std::set<WorkOrder> orders;
  for (std::uint64_t seed = 0; seed < 100; ++seed) orders.insert(FunctionalModeWork(seed).order());
  EXPECT_EQ(orders.size(), 4);
}

TEST(FunctionalModeWork, LateRunsOnlyWhatASynchronisationNeeds) {
  FunctionalModeWork work(0, WorkOrder::kLate);
  Memory out{}, in{};
  work.set(kOut, out.data(), 1, kBytes);
  work.set(kIn, in.data(), 1, kBytes);
  EXPECT_EQ(work.pending(), 2);
  work.synchronise_stream(kOut);
  EXPECT_EQ(out, filled(1));
  EXPECT_EQ(in, filled(0));
  EXPECT_EQ(work.pending(), 1);
}

TEST(FunctionalModeWork, LateRunsTransitiveDependencies) {
  FunctionalModeWork work(0, WorkOrder::kLate);
  Memory first{}, second{};
  work.set(kOut, first.data(), 1, kBytes);
  follow(work, kIn, kOut);
  follow(work, kCompute, kIn, kOtherEvent);
  work.copy(kCompute, second.data(), first.data(), kBytes);
  work.synchronise_stream(kCompute);
  EXPECT_EQ(second, filled(1));
}

TEST(FunctionalModeWork, EarlyRunsAtOnce) {
  FunctionalModeWork work(0, WorkOrder::kEarly);
  Memory memory{};
  work.set(kOut, memory.data(), 1, kBytes);
  EXPECT_EQ(memory, filled(1));
  follow(work, kIn, kOut);
  work.set(kIn, memory.data(), 2, kBytes);
  EXPECT_EQ(memory, filled(2));
  EXPECT_EQ(work.pending(), 0);
}

TEST(FunctionalModeWork, OneStreamRunsTheDrawnStreamAhead) {
  std::set<std::string> orders;
  for (std::uint64_t seed = 0; seed < 50; ++seed)
    orders.insert(letters({seed, WorkOrder::kOneStream}).substr(0, 5));
  for (const char* ahead : {"ccccc", "ooooo", "iiiii"}) EXPECT_TRUE(orders.contains(ahead)) << ahead;
}

TEST(FunctionalModeWork, SynchronisingAnEventRunsNothingAfterIt) {
  FunctionalModeWork work(0, WorkOrder::kLate);
  Memory before{}, behind{};
  work.set(kOut, before.data(), 1, kBytes);
  work.record(kEvent, kOut);
  work.set(kOut, behind.data(), 1, kBytes);
  work.synchronise_event(kEvent);
  EXPECT_EQ(before, filled(1));
  EXPECT_EQ(behind, filled(0));
}

TEST(FunctionalModeWork, RepeatedQueriesEndInTrue) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FunctionalModeWork work(seed);
    Memory memory{};
    for (int i = 0; i < 5; ++i) work.set(kOut, memory.data(), i, kBytes);
    follow(work, kIn, kOut);
    work.record(kOtherEvent, kIn);
    int asked = 1;
    while (!work.query_event(kOtherEvent)) ++asked;
    ASSERT_LE(asked, 10) << "seed " << seed;
    ASSERT_EQ(memory, filled(4)) << "seed " << seed;
    ASSERT_TRUE(work.query_stream(kOut));
  }
}

TEST(FunctionalModeWork, WaitUntilIsMetByAnotherStreamsWork) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FunctionalModeWork work(seed);
    bool is_set = false, went_on_too_early = false, has_run = false;
    work.wait_until(kIn, [&] { return is_set; });
    work.call(kIn, [&] {
      has_run = true;
      went_on_too_early = !is_set;
    });
    work.call(kOut, [&] { is_set = true; });
    work.synchronise_stream(kIn);
    EXPECT_TRUE(has_run) << "seed " << seed;
    EXPECT_FALSE(went_on_too_early) << "seed " << seed;
  }
}

TEST(FunctionalModeWork, SynchronisationWaitsForAConditionSetByAThread) {
  for (const WorkOrder order :
       {WorkOrder::kLate, WorkOrder::kEarly, WorkOrder::kOneStream, WorkOrder::kRandom}) {
    FunctionalModeWork work(1, order);
    std::atomic<bool> is_set = false;
    bool has_run = false;
    work.wait_until(kIn, [&] { return is_set.load(); });
    work.call(kIn, [&] { has_run = true; });
    EXPECT_FALSE(work.query_stream(kIn));
    std::thread sets([&] { is_set = true; });
    work.synchronise_device();
    EXPECT_TRUE(has_run);
    EXPECT_EQ(work.pending(), 0U);
    sets.join();
  }
}

TEST(FunctionalModeWork, BlockingStreamsAndTheLegacyDefaultStreamWaitForEachOther) {
  for (std::uint64_t seed = 0; seed < kSeeds; ++seed) {
    FunctionalModeWork work(seed);
    work.stream_created(kOut, StreamKind::kBlocking);
    std::string written;
    work.call(kOut, [&] { written += 'a'; });
    work.call(kCompute, [&] { written += 'b'; });
    work.call(kOut, [&] { written += 'c'; });
    work.synchronise_device();
    ASSERT_EQ(written, "abc") << "seed " << seed;
  }
}

TEST(FunctionalModeWork, RunsTheWorkOfADestroyedStream) {
  FunctionalModeWork work(0, WorkOrder::kLate);
  Memory memory{};
  work.set(kOut, memory.data(), 1, kBytes);
  work.stream_destroyed(kOut);
  work.stream_created(kOut, StreamKind::kNonBlocking);
  work.synchronise_stream(kOut);
  EXPECT_EQ(memory, filled(0));
  work.synchronise_device();
  EXPECT_EQ(memory, filled(1));
}

TEST(FunctionalModeWork, TheDestructorDropsPendingWork) {
  Memory memory{};
  {
    FunctionalModeWork work(0, WorkOrder::kLate);
    work.set(kOut, memory.data(), 1, kBytes);
  }
  EXPECT_EQ(memory, filled(0));
}

}  // namespace
}  // namespace offprof
