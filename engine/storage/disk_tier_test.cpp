// Tests of the behaviour that every kind of disk tier must have.

#include "engine/storage/disk_tier.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstring>
#include <thread>
#include <vector>

#include "engine/copies/aligned_buffer.h"
#include "tests/support/disk_tier_under_test.h"
#include "tests/support/test_folder.h"

namespace offprof {
namespace {

using testing::Each;
using testing::ElementsAre;
using testing::HasSubstr;
using testing::IsEmpty;

class DiskTierConformance : public EveryDiskTier {};

/// Sizes of whole pieces, parts of a piece, and parts of a block.
constexpr Bytes kSizes[] = {1, 511, 512, 4096, 4097, 8 * kKiB, 8 * kKiB + 1, 100'000, 40 * kKiB};

TEST_P(DiskTierConformance, ReadsBackWrittenData) {
  DiskTier tier(folder_.path(), options());
  for (const Bytes bytes : kSizes) {
    const auto data = disk_pattern(bytes, static_cast<unsigned>(bytes));
    const auto extent = tier.reserve(bytes);
    ASSERT_TRUE(extent);
    tier.wait(tier.write(*extent, data.data(), bytes));
    std::vector<std::byte> back(data.size());
    tier.wait(tier.read(*extent, back.data(), bytes));
    EXPECT_EQ(back, data) << bytes;
  }
}

TEST_P(DiskTierConformance, AcceptsUnalignedMemory) {
  DiskTier tier(folder_.path(), options());
  constexpr Bytes kBytes = 30'000;
  const auto data = disk_pattern(kBytes + 1, 1);
  const auto extent = tier.reserve(kBytes);
  tier.wait(tier.write(*extent, data.data() + 1, kBytes));
  for (const std::size_t shift : {0U, 1U, 8U, 511U, 512U}) {
    std::vector<std::byte> back(kBytes + shift);
    tier.wait(tier.read(*extent, back.data() + shift, kBytes));
    EXPECT_EQ(std::memcmp(back.data() + shift, data.data() + 1, kBytes), 0) << shift;
  }
}

TEST_P(DiskTierConformance, AcceptsAlignedMemory) {
  DiskTier tier(folder_.path(), options());
  constexpr Bytes kBytes = 64 * kKiB;
  const AlignedBuffer from = make_aligned_buffer(kBytes), to = make_aligned_buffer(kBytes);
  const auto data = disk_pattern(kBytes, 5);
  std::memcpy(from.get(), data.data(), kBytes);
  const auto extent = tier.reserve(kBytes);
  tier.write(*extent, from.get(), kBytes);
  tier.wait(tier.read(*extent, to.get(), kBytes));
  EXPECT_EQ(std::memcmp(to.get(), data.data(), kBytes), 0);
}

TEST_P(DiskTierConformance, AReadChangesNothingBeyondItsBytes) {
  DiskTier tier(folder_.path(), options());
  constexpr std::byte kUntouched{0xA5};
  constexpr Bytes kMargin = 8 * kKiB;
  for (const Bytes bytes : kSizes) {
    const auto data = disk_pattern(bytes, 3);
    const auto extent = tier.reserve(bytes);
    tier.write(*extent, data.data(), bytes);
    std::vector<std::byte> back(static_cast<std::size_t>(bytes + 2 * kMargin), kUntouched);
    tier.wait(tier.read(*extent, back.data() + kMargin, bytes));
    EXPECT_THAT(std::vector(back.begin(), back.begin() + kMargin), Each(kUntouched));
    EXPECT_THAT(std::vector(back.end() - kMargin, back.end()), Each(kUntouched)) << bytes;
  }
}

TEST_P(DiskTierConformance, ReadsAPrefixOfTheWrittenData) {
  DiskTier tier(folder_.path(), options());
  const auto data = disk_pattern(20'000, 1);
  const auto extent = tier.reserve(20'000);
  tier.write(*extent, data.data(), 20'000);
  for (const Bytes bytes : {1, 4096, 8192, 8193, 19'999}) {
    std::vector<std::byte> back(static_cast<std::size_t>(bytes));
    tier.wait(tier.read(*extent, back.data(), bytes));
    EXPECT_EQ(std::memcmp(back.data(), data.data(), back.size()), 0) << bytes;
  }
}

TEST_P(DiskTierConformance, TransfersOfAnExtentRunInOrder) {
  DiskTier tier(folder_.path(), options());
  constexpr Bytes kBytes = 50'000;
  const auto extent = tier.reserve(kBytes);
  std::vector<std::vector<std::byte>> data, back(10, std::vector<std::byte>(kBytes));
  for (unsigned i = 0; i < back.size(); ++i) data.push_back(disk_pattern(kBytes, i));
  for (std::size_t i = 0; i < back.size(); ++i) {
    tier.write(*extent, data[i].data(), kBytes);
    tier.read(*extent, back[i].data(), kBytes);
  }
  EXPECT_EQ(tier.take_records().size(), 20U);
  EXPECT_EQ(back, data);
}

TEST_P(DiskTierConformance, RunsManyTransfersAtOnce) {
  DiskTier tier(folder_.path(), options());
  constexpr int kMany = 200;
  std::vector<std::vector<std::byte>> data;
  std::vector<Extent> extents;
  for (int i = 0; i < kMany; ++i) {
    data.push_back(disk_pattern(1 + i * 150, static_cast<unsigned>(i)));
    const auto bytes = static_cast<Bytes>(data.back().size());
    extents.push_back(tier.reserve(bytes).value());
    tier.write(extents.back(), data.back().data(), bytes);
  }
  std::vector<std::vector<std::byte>> back;
  for (int i = kMany - 1; i >= 0; --i) {
    back.emplace_back(data[static_cast<std::size_t>(i)].size());
    tier.read(extents[static_cast<std::size_t>(i)], back.back().data(),
              static_cast<Bytes>(back.back().size()));
  }
  tier.take_records();
  EXPECT_TRUE(std::equal(back.rbegin(), back.rend(), data.begin(), data.end()));
}

TEST_P(DiskTierConformance, RecordsEachTransfer) {
  DiskTier tier(folder_.path(), options());
  const auto data = disk_pattern(20'000, 1);
  std::vector<std::byte> back(100);
  const auto extent = tier.reserve(20'000);
  tier.write(*extent, data.data(), 20'000, 7);
  tier.read(*extent, back.data(), 100, 8);
  const std::vector<DiskRecord> records = tier.take_records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[0].direction, DiskDirection::kWrite);
  EXPECT_EQ(records[0].bytes, 20'000);
  EXPECT_EQ(records[0].tag, 7);
  EXPECT_LE(records[0].begin_ns, records[0].end_ns);
  EXPECT_EQ(records[1].direction, DiskDirection::kRead);
  EXPECT_EQ(records[1].bytes, 100);
  EXPECT_EQ(records[1].tag, 8);
  EXPECT_LE(records[0].end_ns, records[1].begin_ns);
  EXPECT_THAT(tier.take_records(), IsEmpty());
}

TEST_P(DiskTierConformance, ATicketIsDoneAfterItsWait) {
  DiskTier tier(folder_.path(), options());
  const auto data = disk_pattern(5000, 1);
  const auto extent = tier.reserve(5000);
  const DiskTier::Ticket ticket = tier.write(*extent, data.data(), 5000);
  tier.wait(ticket);
  EXPECT_TRUE(tier.is_done(ticket));
  tier.wait(ticket);
}

TEST_P(DiskTierConformance, ReleasedSpaceIsReused) {
  DiskTier tier(folder_.path(), options());
  const auto data = disk_pattern(100'000, 1);
  const auto first = tier.reserve(100'000), second = tier.reserve(100'000);
  tier.write(*first, data.data(), 100'000);
  tier.release(*first);  // waits for the write
  const Bytes file_bytes = tier.file_bytes();
  EXPECT_EQ(tier.reserve(50'000)->offset, first->offset);
  EXPECT_EQ(tier.reserve(40'000)->offset, first->offset + round_up(50'000, 4096));
  EXPECT_EQ(tier.file_bytes(), file_bytes);
  EXPECT_NE(first->offset, second->offset);
}

TEST_P(DiskTierConformance, DestructorWaitsForTransfersInProgress) {
  const auto data = disk_pattern(kMiB, 1);
  for (int i = 0; i < 10; ++i) {
    DiskTier tier(folder_.path(), options());
    const auto extent = tier.reserve(kMiB), other = tier.reserve(kMiB);
    tier.write(*extent, data.data(), kMiB);
    tier.write(*other, data.data(), kMiB);
    tier.write(*extent, data.data(), kMiB);
  }
}

TEST_P(DiskTierConformance, AnyThreadMayCallIt) {
  DiskTier tier(folder_.path(), options());
  const auto work = [&](unsigned seed) {
    for (unsigned i = 0; i < 20; ++i) {
      const Bytes bytes = 1000 + 3000 * i;
      const auto data = disk_pattern(bytes, 100 * seed + i);
      const auto extent = tier.reserve(bytes);
      tier.write(*extent, data.data(), bytes);
      std::vector<std::byte> back(data.size());
      tier.wait(tier.read(*extent, back.data(), bytes));
      EXPECT_EQ(back, data);
      tier.release(*extent);
    }
  };
  std::vector<std::thread> threads;
  for (unsigned seed = 0; seed < 4; ++seed) threads.emplace_back(work, seed);
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(tier.used_bytes(), 0);
}

TEST_P(DiskTierConformance, LeavesNoFileInItsFolder) {
  {
    DiskTier tier(folder_.path(), options());
    const auto data = disk_pattern(kMiB, 1);
    tier.wait(tier.write(*tier.reserve(kMiB), data.data(), kMiB));
    EXPECT_TRUE(folder_.files().empty());
  }
  EXPECT_TRUE(folder_.files().empty());
}

INSTANTIATE_TEST_SUITE_P(, DiskTierConformance, every_disk_tier(testing::Bool()), name_of_disk_tier);

TEST(DiskTier, CountsReservedBytes) {
  const TestFolder folder;
  DiskTier tier(folder.path());
  const auto first = tier.reserve(1000), second = tier.reserve(5000);
  EXPECT_EQ(tier.used_bytes(), 6000);
  EXPECT_EQ(tier.file_bytes(), 3 * 4096);
  tier.release(*first);
  EXPECT_EQ(tier.used_bytes(), 5000);
  EXPECT_EQ(tier.peak_bytes(), 6000);
  tier.reset_peak();
  EXPECT_EQ(tier.peak_bytes(), 5000);
  tier.release(*second);
  EXPECT_EQ(tier.used_bytes(), 0);
}

TEST(DiskTier, RefusesToExceedItsCapacity) {
  const TestFolder folder;
  DiskTierOptions options;
  options.capacity_bytes = 64 * kKiB;
  DiskTier tier(folder.path(), options);
  std::string why_not;
  const auto half = tier.reserve(32 * kKiB, &why_not);
  EXPECT_THAT(why_not, IsEmpty());
  EXPECT_FALSE(tier.reserve(33 * kKiB, &why_not));
  EXPECT_THAT(why_not, HasSubstr("capacity of 64.0 KiB has no contiguous 36.0 KiB: 32.0 KiB are free"));
  EXPECT_TRUE(tier.reserve(32 * kKiB));
  EXPECT_FALSE(tier.reserve(1));
  tier.release(*half);
  EXPECT_TRUE(tier.reserve(1));
}

TEST(DiskTier, GrowsOnlyByTheBytesMissingAtTheEnd) {
  const TestFolder folder;
  DiskTierOptions options;
  options.capacity_bytes = 64 * kKiB;
  DiskTier tier(folder.path(), options);
  tier.release(*tier.reserve(40 * kKiB));
  EXPECT_EQ(tier.reserve(64 * kKiB)->offset, 0);
}

TEST(DiskTier, ExtentsDoNotOverlap) {
  const TestFolder folder;
  DiskTier tier(folder.path());
  const auto first = tier.reserve(1), second = tier.reserve(1), third = tier.reserve(4097);
  EXPECT_THAT((std::vector{first->offset, second->offset, third->offset}), ElementsAre(0, 4096, 8192));
}

TEST(DiskTierDeathTest, AnUnwrittenExtentCannotBeRead) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  const TestFolder folder;
  DiskTier tier(folder.path());
  const auto extent = tier.reserve(100);
  std::byte byte{};
  EXPECT_DEATH(tier.read(*extent, &byte, 1), "internal error");
}

TEST(DiskTier, DescribesItsFacts) {
  DiskTierFacts facts;
  facts.folder = "/scratch";
  facts.file_system = "ext4";
  facts.free_bytes = kGiB;
  facts.backend = DiskBackend::kIoUring;
  facts.direct_io = true;
  EXPECT_EQ(describe(facts), "io_uring, direct I/O, ext4 in /scratch with 1.00 GiB free");
  facts.backend = DiskBackend::kThreads;
  facts.why_threads = "the kernel has no io_uring";
  facts.direct_io = false;
  facts.why_buffered = "ext4 rejects O_DIRECT";
  EXPECT_EQ(
      describe(facts),
      "threads (the kernel has no io_uring), buffered I/O (ext4 rejects O_DIRECT), ext4 in /scratch with "
      "1.00 GiB free");
}

}  // namespace
}  // namespace offprof
