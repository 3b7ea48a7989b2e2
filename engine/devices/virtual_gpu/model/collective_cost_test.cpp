#include "engine/devices/virtual_gpu/model/collective_cost.h"

#include <gtest/gtest.h>

namespace offprof {
namespace {

/// Returns nccl-tests' bus bandwidth in GB/s, for the share of the message that crosses each link.
double bus_bandwidth(const CollectiveCost& cost, Collective collective, Bytes bytes, GroupShape group,
                     double share) {
  return share * static_cast<double>(bytes) / static_cast<double>(cost.time_of(collective, bytes, group));
}

TEST(CollectiveCost, SmallMessagesTakeTheLatencyOfTheRing) {
  const CollectiveCost h200(load_profile("h200"));
  // 6.6 us and 14 or 7 steps of 0.6 us.
  EXPECT_EQ(h200.time_of(Collective::kAllReduce, 0, {.ranks = 8}), 15'000);
  EXPECT_EQ(h200.time_of(Collective::kAllGather, 0, {.ranks = 8}), 10'800);
  EXPECT_EQ(h200.time_of(Collective::kSend, 0, {.ranks = 8}), 7'200);
}

TEST(CollectiveCost, LargeMessagesReachThePublishedBandwidthOfEightCards) {
  constexpr GroupShape kNode{.ranks = 8};
  const CollectiveCost h100(load_profile("h100-80gb")), a100(load_profile("a100-40gb"));
  EXPECT_NEAR(bus_bandwidth(h100, Collective::kAllReduce, 8 * kGiB, kNode, 1.75), 360, 5);
  EXPECT_NEAR(bus_bandwidth(a100, Collective::kAllReduce, 8 * kGiB, kNode, 1.75), 235, 7);
  EXPECT_NEAR(bus_bandwidth(a100, Collective::kAllGather, 8 * kGiB, kNode, 0.875), 235, 7);
}

TEST(CollectiveCost, CardsWithoutNvlinkUsePcie) {
  const CollectiveCost l4(load_profile("l4"));
  const double pcie = load_profile("l4").link.d2h.bytes_per_second / 1e9;
  EXPECT_NEAR(bus_bandwidth(l4, Collective::kAllGather, 8 * kGiB, {.ranks = 2}, 0.5), 0.8 * pcie, 1);
}

TEST(CollectiveCost, OneRankOfEachNodeHasOneNetworkCard) {
  const CollectiveCost h200(load_profile("h200"));
  constexpr GroupShape kOneEach{.ranks = 8, .nodes = 8}, kWhole{.ranks = 64, .nodes = 8};
  EXPECT_NEAR(bus_bandwidth(h200, Collective::kReduceScatter, 8 * kGiB, kOneEach, 0.875), 46, 1);
  EXPECT_NEAR(bus_bandwidth(h200, Collective::kReduceScatter, 8 * kGiB, kWhole, 63.0 / 64), 360, 5);
}

TEST(CollectiveCost, SmallAllReducesBetweenManyNodesUseATree) {
  const CollectiveCost h200(load_profile("h200"));
  // A ring of 1024 ranks would take 2046 steps of at least 1 us.
  const Nanoseconds tree = h200.time_of(Collective::kAllReduce, 8, {.ranks = 1024, .nodes = 128});
  EXPECT_EQ(tree, 6'800 + 2 * (7 * 1'000 + 7 * 5'000) + 1);
  EXPECT_GT(h200.time_of(Collective::kAllGather, 8, {.ranks = 1024, .nodes = 128}), 1'000'000);
}

TEST(CollectiveCost, AGroupOfOneRankCopiesItsData) {
  const DeviceProfile profile = load_profile("h200");
  const CollectiveCost h200(profile);
  EXPECT_EQ(h200.time_of(Collective::kAllReduce, 8, {}), profile.kernel_ns);
  EXPECT_NEAR(static_cast<double>(h200.time_of(Collective::kAllReduce, kGiB, {})),
              2.0 * kGiB / (4800 * profile.memory_efficiency), 2);
}

}  // namespace
}  // namespace offprof
