#include "engine/devices/disk/tiered_device_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <atomic>
#include <cstdint>
#include <deque>
#include <filesystem>
#include <fstream>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <vector>

#include "engine/devices/disk/step_disk_copies.h"
#include "engine/devices/host/host_queues.h"
#include "engine/storage/block_codec.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::HasSubstr;

constexpr Bytes kBytes = 100'000;

enum class TierKind { kFolder, kCompressed };

class TierDiskTest : public testing::TestWithParam<TierKind> {
 protected:
  void SetUp() override {
    disk_ = open_tiered_device_disk(
        {.folder = folder_.path(), .checksums = true, .compressed = is_compressed()}, queues_);
  }

  static bool is_compressed() { return GetParam() == TierKind::kCompressed; }
  Extent reserve() { return disk_->reserve(kBytes, nullptr).value(); }
  static std::vector<std::byte> filled_with(int value) {
    return std::vector<std::byte>(kBytes, static_cast<std::byte>(value));
  }

  TestFolder folder_;
  Nanoseconds exposed_ns_ = 0;
  CopyStream d2h_{Link{}}, h2d_{Link{}};
  HostQueues queues_{d2h_, h2d_, exposed_ns_};
  std::unique_ptr<DeviceDisk> disk_;
};

/// Returns the tiers that this build has.
std::vector<TierKind> tiers() {
  std::vector<TierKind> tiers = {TierKind::kFolder};
  if (has_block_codec()) tiers.push_back(TierKind::kCompressed);
  return tiers;
}

INSTANTIATE_TEST_SUITE_P(Tiers, TierDiskTest, testing::ValuesIn(tiers()), [](const auto& tier) {
  return tier.param == TierKind::kFolder ? "folder" : "compressed";
});

TEST_P(TierDiskTest, WritesAfterTheEarlierWorkOfTheQueue) {
  const Extent extent = reserve();
  std::vector<std::byte> buffer = filled_with(0), back = filled_with(0);
  std::promise<void> go;
  d2h_.call([&] {
    go.get_future().wait();
    std::ranges::fill(buffer, std::byte{7});
  });
  const auto written = disk_->write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 0);
  go.set_value();
  disk_->wait(written);
  disk_->wait(disk_->read(extent, back.data(), kBytes, 0));
  EXPECT_EQ(back, filled_with(7));
}

TEST_P(TierDiskTest, AHeldQueueContinuesAfterTheRead) {
  const Extent extent = reserve();
  const std::vector<std::byte> buffer = filled_with(3);
  std::vector<std::byte> back = filled_with(0), copied = filled_with(0);
  disk_->wait(disk_->write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 0));
  const auto read = disk_->read(extent, back.data(), kBytes, 0);
  disk_->hold(CopyQueue::kH2d, read);
  h2d_.wait(h2d_.call([&] { copied = back; }));
  EXPECT_EQ(copied, buffer);
  disk_->check(read);
}

TEST_P(TierDiskTest, RecordsHaveTheirTags) {
  const Extent extent = reserve();
  std::vector<std::byte> buffer = filled_with(1);
  disk_->wait(disk_->write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 5));
  const std::vector<DiskRecord> records = disk_->take_records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].tag, 5);
  EXPECT_EQ(records[0].bytes, kBytes);
}

/// A file stores the bytes as they are; compressed memory stores fewer.
TEST_P(TierDiskTest, OnlyCompressedMemoryReportsStoredBytes) {
  std::vector<std::byte> buffer = filled_with(1);
  disk_->wait(disk_->write(reserve(), buffer.data(), kBytes, CopyQueue::kD2h, 5));
  const std::optional<StoredBytes> stored = disk_->take_stored();
  ASSERT_EQ(stored.has_value(), is_compressed());
  if (!stored) return;
  EXPECT_EQ(stored->given, kBytes);
  EXPECT_LT(stored->stored, kBytes);
}

/// Notes about the calls of a gate; they outlive it.
struct GateNotes {
  std::atomic<std::uint32_t> count = 0;
  std::vector<std::uint32_t> held;  ///< the counts that queues were held for
  std::function<void(std::uint32_t)> on_open;

  void wait_for(std::uint32_t wanted) {
    for (std::uint32_t now = count; now < wanted; now = count) count.wait(now);
  }
};

class NotedGate final : public QueueGate {
 public:
  explicit NotedGate(GateNotes& notes) : notes_(notes) {}
  void open(std::uint32_t count) override {
    if (notes_.on_open) notes_.on_open(count);
    notes_.count = count;
    notes_.count.notify_all();
  }
  void hold(CopyQueue, std::uint32_t count) override { notes_.held.push_back(count); }

 private:
  GateNotes& notes_;
};

/// Queues that do nothing until somebody waits for them. `gate`: the notes of their gate; nullptr: none.
class LateQueues final : public DeviceQueues {
 public:
  explicit LateQueues(GateNotes* gate = nullptr) : gate_(gate) {}

  std::unique_ptr<QueueGate> make_gate() override {
    return gate_ == nullptr ? nullptr : std::make_unique<NotedGate>(*gate_);
  }
  std::unique_ptr<QueuePoint> call(CopyQueue, std::function<void()> work) override {
    calls_.push_back(std::move(work));
    return std::make_unique<Point>(*this);
  }
  std::unique_ptr<QueuePoint> call_beside_compute(std::function<void()> work) override {
    return call(CopyQueue::kD2h, std::move(work));
  }
  void finish_calls() override {
    if (has_failed) throw environment_error("the device fails");
    for (; !calls_.empty(); calls_.pop_front()) calls_.front()();
  }

  std::size_t calls_to_come() const { return calls_.size(); }

  bool has_failed = false;

 private:
  class Point final : public QueuePoint {
   public:
    explicit Point(LateQueues& queues) : queues_(queues) {}
    void wait() override { queues_.finish_calls(); }
    void hold(CopyQueue) override {}

   private:
    LateQueues& queues_;
  };

  std::deque<std::function<void()>> calls_;
  GateNotes* gate_;
};

class LateTierDisk : public testing::Test {
 protected:
  DeviceDisk::Transfer write_and_read() {
    disk_->wait(disk_->write(extent_, buffer_.data(), kBytes, CopyQueue::kD2h, 0));
    return disk_->read(extent_, buffer_.data(), kBytes, 0);
  }

  /// Damages the first bytes of the unnamed file with the disk's contents.
  void damage_the_disk() const {
    for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
      std::error_code no_link;
      const std::string target = std::filesystem::read_symlink(entry, no_link);
      if (target.starts_with(folder_.path())) std::fstream(entry.path()) << "damaged";
    }
  }

  TestFolder folder_;
  LateQueues queues_;
  std::unique_ptr<DeviceDisk> disk_ =
      open_tiered_device_disk({.folder = folder_.path(), .checksums = true}, queues_);
  Extent extent_ = disk_->reserve(kBytes, nullptr).value();
  std::vector<std::byte> buffer_ = std::vector<std::byte>(kBytes, std::byte{5});
};

TEST_F(LateTierDisk, AReadIsIncompleteBeforeItIsGivenToTheTier) {
  const DeviceDisk::Transfer read = write_and_read();
  EXPECT_FALSE(disk_->check(read));
  disk_->wait(read);
  EXPECT_TRUE(disk_->check(read));
}

TEST_F(LateTierDisk, AFailedReadIsThrownByWaitAndKept) {
  const DeviceDisk::Transfer read = write_and_read();
  damage_the_disk();
  EXPECT_FALSE(disk_->check(read));
  EXPECT_THROW(disk_->wait(read), Error);
  EXPECT_THROW(disk_->check(read), Error);
  EXPECT_THAT(disk_->take_failure().value().what(), HasSubstr("checksum"));
}

/// The device may have failed because it computed with data that was not read.
TEST_F(LateTierDisk, AFailedReadIsReportedBeforeAFailedDevice) {
  const DeviceDisk::Transfer read = write_and_read();
  damage_the_disk();
  queues_.finish_calls();
  queues_.has_failed = true;
  EXPECT_THROW(disk_->wait(read), Error);
  EXPECT_THAT(disk_->take_failure().value().what(), HasSubstr("checksum"));
}

TEST_F(LateTierDisk, SpaceBeingFreedIsNotReservedAgain) {
  disk_->release(extent_);
  EXPECT_NE(disk_->reserve(kBytes, nullptr).value(), extent_);
  queues_.finish_calls();
  EXPECT_EQ(disk_->reserve(kBytes, nullptr).value(), extent_);
}

class GatedTierDisk : public LateTierDisk {
 protected:
  GatedTierDisk() { disk_ = open_tiered_device_disk({.folder = folder_.path(), .checksums = true}, gated_); }
  ~GatedTierDisk() override { disk_.reset(); }  // before the members that it uses

  /// Reserves space and fills it with `value`.
  Extent written(int value) {
    const Extent extent = disk_->reserve(kBytes, nullptr).value();
    const std::vector<std::byte> buffer(kBytes, static_cast<std::byte>(value));
    disk_->wait(disk_->write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 0));
    return extent;
  }
  DeviceDisk::Transfer read_and_hold(const Extent& extent, std::vector<std::byte>& to) {
    const auto read = disk_->read(extent, to.data(), kBytes, 0);
    disk_->hold(CopyQueue::kH2d, read);
    return read;
  }

  GateNotes gate_;
  LateQueues gated_{&gate_};
  std::vector<std::byte> first_ = std::vector<std::byte>(kBytes), second_ = first_;
};

/// If a call waited for the first read, the second read could not be given to the tier.
TEST_F(GatedTierDisk, NoCallWaitsForARead) {
  const Extent first = written(1), second = written(2);
  read_and_hold(first, first_);
  read_and_hold(second, second_);
  EXPECT_EQ(gated_.calls_to_come(), 2U) << "the calls that start the reads";
  EXPECT_EQ(gate_.held, (std::vector<std::uint32_t>{1, 2}));
  EXPECT_EQ(gate_.count, 0U);
  gated_.finish_calls();
  gate_.wait_for(2);
}

TEST_F(GatedTierDisk, OpensAGateWhenTheReadIsComplete) {
  const Extent first = written(1), second = written(2);
  std::vector<std::byte> seen;
  gate_.on_open = [&](std::uint32_t count) { seen.push_back((count == 1 ? first_ : second_).back()); };
  read_and_hold(first, first_);
  read_and_hold(second, second_);
  gated_.finish_calls();
  gate_.wait_for(2);
  EXPECT_EQ(seen, (std::vector<std::byte>{std::byte{1}, std::byte{2}}));
}

TEST_F(GatedTierDisk, OpensAGateForAFailedReadToo) {
  const Extent extent = written(1);
  damage_the_disk();
  const auto read = read_and_hold(extent, first_);
  gated_.finish_calls();
  gate_.wait_for(1);
  EXPECT_THROW(disk_->check(read), Error);
}

TEST_F(GatedTierDisk, OpensTheGateForAllReadsOnDestruction) {
  const Extent extent = written(1);
  for (int i = 0; i < 10; ++i) read_and_hold(extent, first_);
  gated_.finish_calls();
  disk_.reset();
  EXPECT_EQ(gate_.count, 10U);
}

TEST(TieredDeviceDisk, NeedsAFolder) {
  Nanoseconds exposed_ns = 0;
  CopyStream d2h{Link{}}, h2d{Link{}};
  HostQueues queues(d2h, h2d, exposed_ns);
  EXPECT_THROW(open_tiered_device_disk({}, queues), Error);
}

/// A disk that takes one copy, and fails if `fails` is set.
class FakeDisk final : public DeviceDisk {
 public:
  std::optional<Extent> reserve(Bytes bytes, std::string*) override {
    if (is_taken) return std::nullopt;
    is_taken = true;
    return Extent{0, bytes};
  }
  void release(const Extent&) override { is_taken = false; }
  Transfer write(const Extent&, const std::byte*, Bytes, CopyQueue, std::int64_t) override { return begin(); }
  Transfer read(const Extent&, std::byte*, Bytes, std::int64_t) override { return begin(); }
  void hold(CopyQueue, const Transfer&) override { ++holds; }
  void wait(const Transfer&) override {
    --under_way;
    if (fails) throw environment_error("the disk fails");
  }
  bool check(const Transfer&) override {
    if (is_over && fails) throw environment_error("the disk fails");
    return is_over;
  }
  std::vector<DiskRecord> take_records() override { return {}; }
  std::string warning() const override { return {}; }
  std::string description() const override { return "fake"; }

  bool is_taken = false, fails = false, is_over = true;
  int under_way = 0, holds = 0;

 private:
  Transfer begin() {
    ++under_way;
    return std::make_shared<DiskTransfer>();
  }
};

template <typename EachCommand>
EachCommand of_copy(CopyId copy) {
  return {{copy, copy, kBytes}};
}

TEST(StepDiskCopies, CountsUsedAndTransferredBytes) {
  FakeDisk disk;
  StepDiskCopies copies(&disk);
  EXPECT_TRUE(copies.take(of_copy<TakeDisk>(3)));
  copies.write(of_copy<WriteDisk>(3), nullptr, CopyQueue::kD2h);
  copies.wait(3);
  copies.read(of_copy<ReadDisk>(3), nullptr);
  copies.hold_for_read(3, CopyQueue::kH2d);
  copies.free(of_copy<FreeDisk>(3));
  EXPECT_EQ(disk.holds, 1);
  EXPECT_EQ(copies.peak_bytes(), kBytes);
  EXPECT_EQ(copies.write_bytes(), kBytes);
  EXPECT_EQ(copies.read_bytes(), kBytes);
  EXPECT_FALSE(disk.is_taken);
}

TEST(StepDiskCopies, CountsRefusalsOfAFullDisk) {
  FakeDisk disk;
  disk.is_taken = true;
  StepDiskCopies copies(&disk);
  EXPECT_FALSE(copies.take(of_copy<TakeDisk>(0)));
  EXPECT_EQ(copies.refusals(), 1);
}

TEST(StepDiskCopies, RejectsTakeWithoutADisk) {
  StepDiskCopies copies(nullptr);
  EXPECT_THROW(copies.take(of_copy<TakeDisk>(0)), Error);
}

TEST(StepDiskCopies, HoldsNoQueueForACopyThatStayedInHostMemory) {
  FakeDisk disk;
  StepDiskCopies copies(&disk);
  copies.take(of_copy<TakeDisk>(0));
  copies.write(of_copy<WriteDisk>(0), nullptr, CopyQueue::kD2h);
  copies.hold_for_read(0, CopyQueue::kH2d);
  copies.hold_for_read(1, CopyQueue::kH2d);  // copy 1 is not on the disk
  EXPECT_EQ(disk.holds, 0);
}

TEST(StepDiskCopies, ReportsAFailedReadWhenTheCopyInIsWaitedFor) {
  FakeDisk disk;
  StepDiskCopies copies(&disk);
  copies.take(of_copy<TakeDisk>(0));
  copies.read(of_copy<ReadDisk>(0), nullptr);
  disk.fails = true;
  EXPECT_THROW(copies.check_read(0), Error);
}

TEST(StepDiskCopies, ReportsAnIncompleteFailedReadWhenReadsAreFinished) {
  FakeDisk disk;
  disk.is_over = false;
  disk.fails = true;
  StepDiskCopies copies(&disk);
  for (const CopyId copy : {0, 1}) {
    disk.is_taken = false;
    copies.take(of_copy<TakeDisk>(copy));
    copies.read(of_copy<ReadDisk>(copy), nullptr);
  }
  copies.check_read(0);
  EXPECT_THROW(copies.finish_reads(), Error);
  EXPECT_THROW(copies.check_read(1), Error) << "no later call would report it";
}

TEST(StepDiskCopies, WaitsForIncompleteReadsWhenTheStepIsLost) {
  FakeDisk disk;
  disk.is_over = false;
  {
    StepDiskCopies copies(&disk);
    copies.take(of_copy<TakeDisk>(0));
    copies.read(of_copy<ReadDisk>(0), nullptr);
    copies.check_read(0);
    copies.free(of_copy<FreeDisk>(0));
    EXPECT_EQ(disk.under_way, 1);
  }
  EXPECT_EQ(disk.under_way, 0);
}

TEST(StepDiskCopies, FreesItsSpaceAndTransfersWhenTheStepIsLost) {
  FakeDisk disk;
  {
    StepDiskCopies copies(&disk);
    copies.take(of_copy<TakeDisk>(0));
    copies.write(of_copy<WriteDisk>(0), nullptr, CopyQueue::kD2h);
    disk.fails = true;
    copies.settle(0);
    copies.settle(1);
    EXPECT_EQ(disk.under_way, 0);
  }
  EXPECT_FALSE(disk.is_taken);
}

}  // namespace
}  // namespace offprof
