#include "engine/devices/virtual_gpu/state/gpu_collectives.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <atomic>
#include <cstring>
#include <thread>
#include <vector>

#include "engine/devices/virtual_gpu/state/simulated_gpu.h"

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;

using Numbers = std::vector<std::int64_t>;

constexpr int kRanks = 4, kRank = 1;

struct GpuCollectivesTest : testing::Test {
  GpuCollectivesTest() {
    VirtualGpuOptions options;
    options.profile = load_profile("h200");
    options.devices = 2;
    gpu.configure(std::move(options));
    communicator = gpu.collectives().create(kRank, kRanks);
  }

  std::int64_t* memory(Bytes bytes) {
    void* address = nullptr;
    EXPECT_EQ(gpu.memory().allocate(&address, bytes), GpuStatus::kOk);
    return static_cast<std::int64_t*>(address);
  }
  std::int64_t* device_copy(const Numbers& numbers) {
    auto* const at = memory(kMiB);
    copy(at, numbers.data(), numbers.size());
    return at;
  }
  Numbers read(const std::int64_t* at, std::size_t count) {
    Numbers numbers(count, -1);
    copy(numbers.data(), at, count);
    return numbers;
  }
  void copy(std::int64_t* to, const std::int64_t* from, std::size_t count) {
    const CopyRows row{.to = to, .from = from, .bytes = static_cast<Bytes>(count * sizeof *to)};
    ASSERT_EQ(gpu.copies().copy(nullptr, row, HostWaits::kUntilDone), GpuStatus::kOk);
  }
  void run(Collective collective, const void* send, void* receive, Bytes bytes,
           Reduction reduction = Reduction::kOther, bool is_root = false) {
    const CollectiveCall call{.collective = collective,
                              .send = send,
                              .receive = receive,
                              .bytes = bytes,
                              .type = NumberType::kInt64,
                              .reduction = reduction,
                              .is_root = is_root};
    ASSERT_EQ(gpu.collectives().run(nullptr, *communicator, std::span(&call, 1)), GpuStatus::kOk);
  }

  SimulatedGpu gpu;
  Communicator* communicator = nullptr;
};

TEST_F(GpuCollectivesTest, ValuesThatCopiesBroughtAreReadBack) {
  auto* const at = device_copy({7, 8});
  EXPECT_THAT(read(at, 2), ElementsAre(7, 8));
  EXPECT_THAT(read(at + 1, 1), ElementsAre(8));
}

TEST_F(GpuCollectivesTest, ValuesAreUnknownOnceAKernelMayHaveChangedThem) {
  auto* const at = device_copy({7, 8});
  ASSERT_EQ(gpu.kernels().launch(nullptr, {.name = "kernel"}), GpuStatus::kOk);
  EXPECT_THAT(read(at, 2), ElementsAre(0, 0));
}

TEST_F(GpuCollectivesTest, GathersTheSameValuesFromAllRanks) {
  auto* const gathered = memory(kMiB);
  run(Collective::kAllGather, device_copy({7, 8}), gathered, kRanks * 16);
  EXPECT_THAT(read(gathered, 8), ElementsAre(7, 8, 7, 8, 7, 8, 7, 8));
}

TEST_F(GpuCollectivesTest, ScattersThePartOfTheRank) {
  auto* const own = memory(kMiB);
  run(Collective::kReduceScatter, device_copy({1, 2, 3, 4}), own, kRanks * 8, Reduction::kMax);
  EXPECT_THAT(read(own, 1), ElementsAre(2));
}

TEST_F(GpuCollectivesTest, SumsTheSameValuesOfAllRanks) {
  auto* const numbers = device_copy({1, -2});
  run(Collective::kAllReduce, numbers, numbers, 16, Reduction::kSum);
  EXPECT_THAT(read(numbers, 2), ElementsAre(4, -8));
}

TEST_F(GpuCollectivesTest, AReductionThatIsNotKnownGivesNoValues) {
  auto* const numbers = device_copy({1, 2});
  run(Collective::kAllReduce, numbers, numbers, 16, Reduction::kOther);
  EXPECT_THAT(read(numbers, 2), ElementsAre(0, 0));
}

TEST_F(GpuCollectivesTest, OnlyTheRootReceivesAReduction) {
  auto* const numbers = device_copy({1});
  auto* const result = device_copy({9});
  run(Collective::kReduce, numbers, result, 8, Reduction::kMax);
  EXPECT_THAT(read(result, 1), ElementsAre(9));
  run(Collective::kReduce, numbers, result, 8, Reduction::kMax, /*is_root=*/true);
  EXPECT_THAT(read(result, 1), ElementsAre(1));
}

TEST_F(GpuCollectivesTest, ARankHasItsOwnValuesAfterABroadcast) {
  auto* const numbers = device_copy({5});
  run(Collective::kBroadcast, numbers, numbers, 8);
  EXPECT_THAT(read(numbers, 1), ElementsAre(5));
}

TEST_F(GpuCollectivesTest, ABroadcastOfAnotherRankGivesWhatThisRankWould) {
  auto* const received = device_copy({0});
  run(Collective::kBroadcast, device_copy({5}), received, 8);
  EXPECT_THAT(read(received, 1), ElementsAre(5));
}

// PyTorch 2.15 gathers a list of tensors by a broadcast of each rank, all in one group.
TEST_F(GpuCollectivesTest, BroadcastsOfAllRanksInOneGroupGather) {
  auto *const own = device_copy({5}), *const first = device_copy({0}), *const second = device_copy({0});
  CollectiveCall from_here{.collective = Collective::kBroadcast, .send = own, .receive = first, .bytes = 8};
  from_here.is_root = true;
  const std::vector<CollectiveCall> calls = {
      from_here, {.collective = Collective::kBroadcast, .send = second, .receive = second, .bytes = 8}};
  ASSERT_EQ(gpu.collectives().run(nullptr, *communicator, calls), GpuStatus::kOk);
  EXPECT_THAT(read(first, 1), ElementsAre(5));
  EXPECT_THAT(read(second, 1), ElementsAre(5));
}

TEST_F(GpuCollectivesTest, ReceivedValuesAreUnknown) {
  auto* const numbers = device_copy({5});
  run(Collective::kReceive, nullptr, numbers, 8);
  EXPECT_THAT(read(numbers, 1), ElementsAre(0));
}

TEST_F(GpuCollectivesTest, ACollectiveIsAKernelWithTheTimeOfTheModel) {
  const Nanoseconds before = gpu.stream_time(nullptr);
  run(Collective::kAllReduce, memory(kGiB), memory(kGiB), kGiB, Reduction::kSum);
  const GroupShape two_nodes{.ranks = kRanks, .nodes = 2};
  const DeviceProfile h200 = load_profile("h200");
  const CollectiveCost cost(h200, usual_cluster(h200));
  const Nanoseconds expected = cost.time_of(Collective::kAllReduce, kGiB, two_nodes);
  EXPECT_EQ(gpu.stream_time(nullptr) - before, expected + gpu.link().launch_ns);
  const CollectiveFigures figures = gpu.collective_figures();
  ASSERT_EQ(figures.counts.size(), 1U);
  EXPECT_EQ(figures.counts[0].name, "all_reduce");
  EXPECT_EQ(figures.counts[0].calls, 1);
  EXPECT_EQ(figures.counts[0].bytes, kGiB);
  EXPECT_EQ(figures.counts[0].time_ns, expected);
  EXPECT_LT(figures.counts[0].range.low_ns, expected);
  EXPECT_GT(figures.counts[0].range.high_ns, expected);
}

TEST_F(GpuCollectivesTest, SendsAndReceivesOfAGroupRunAtTheSameTime) {
  const int peer = communicator->rank + 1;
  const std::vector<CollectiveCall> both = {
      {.collective = Collective::kSend, .bytes = kGiB, .root = peer},
      {.collective = Collective::kReceive, .bytes = kGiB, .root = peer}};
  EXPECT_EQ(gpu.collectives().time_of(*communicator, both),
            gpu.collectives().time_of(*communicator, std::span(both).first(1)));
}

TEST_F(GpuCollectivesTest, AMessageTakesTheTimeOfTheLinkToItsPeer) {
  const auto time_to = [&](int peer) {
    const std::vector<CollectiveCall> send = {{.collective = Collective::kSend, .bytes = kGiB, .root = peer}};
    return static_cast<double>(gpu.collectives().time_of(*communicator, send));
  };
  const int rank = communicator->rank, in_node = rank % (kRanks / 2) == 0 ? rank + 1 : rank - 1;
  EXPECT_NEAR(time_to(in_node), kGiB / 360.0, 1e5);
  EXPECT_NEAR(time_to((rank + kRanks / 2) % kRanks), kGiB / 47.0, 1e6);
  EXPECT_LT(time_to(rank), kGiB / 1000.0);  // a copy
}

TEST_F(GpuCollectivesTest, CountsTheMostCommunicatorsAtOneTime) {
  Communicator* const second = gpu.collectives().create(0, 2);
  EXPECT_EQ(gpu.collectives().destroy(second), GpuStatus::kOk);
  EXPECT_EQ(gpu.collectives().destroy(second), GpuStatus::kInvalidHandle);
  EXPECT_EQ(gpu.collective_figures().communicators, 2);
  EXPECT_THAT(gpu.collective_figures().counts, IsEmpty());
}

TEST_F(GpuCollectivesTest, DestroyingACommunicatorWaitsForTheDevice) {
  run(Collective::kAllReduce, memory(kGiB), memory(kGiB), kGiB, Reduction::kSum);
  EXPECT_EQ(gpu.collectives().destroy(communicator), GpuStatus::kOk);
  EXPECT_GE(gpu.host_time(), gpu.stream_time(nullptr));
}

TEST_F(GpuCollectivesTest, RemembersTheShapeOfANotedGroup) {
  gpu.note_group("id", 8, 8, "name");
  const auto noted = gpu.collectives().noted_group("id");
  ASSERT_TRUE(noted.has_value());
  EXPECT_EQ(noted->shape, (GroupShape{.ranks = 8, .nodes = 8}));
  EXPECT_EQ(noted->name, "name");
  EXPECT_FALSE(gpu.collectives().noted_group("other").has_value());
}

TEST_F(GpuCollectivesTest, LookingAtAnEventMovesNoClock) {
  const EventId end = gpu.streams().create_event(true), event = gpu.streams().create_event(true);
  run(Collective::kBroadcast, memory(kGiB), memory(kGiB), kGiB);
  gpu.streams().record_event(end, nullptr);  // which a watchdog sees later
  gpu.streams().record_event(event, nullptr);
  const Nanoseconds before = gpu.host_time();
  EXPECT_EQ(gpu.streams().peek_event(event), GpuStatus::kNotReady);
  EXPECT_EQ(gpu.host_time(), before);
  gpu.streams().synchronise_device();
  EXPECT_EQ(gpu.streams().peek_event(event), GpuStatus::kOk);
}

TEST_F(GpuCollectivesTest, AWatchdogSeesTheEndOfAnAllReduceBeforeALaterCollective) {
  const EventId event = gpu.streams().create_event(true);
  run(Collective::kAllReduce, memory(kGiB), memory(kGiB), kGiB, Reduction::kSum);
  gpu.streams().record_event(event, nullptr);
  gpu.hold_host(2 * WatchedEnds::kPeriod);
  std::atomic<bool> has_seen = false;
  std::thread watchdog([&] {
    while (gpu.streams().peek_event(event) != GpuStatus::kOk) std::this_thread::yield();
    has_seen = true;
    gpu.streams().note_watchdog();
  });
  EXPECT_FALSE(has_seen);
  run(Collective::kBroadcast, memory(kGiB), memory(kGiB), kGiB);
  EXPECT_TRUE(has_seen);
  watchdog.join();
}

}  // namespace
}  // namespace offprof
