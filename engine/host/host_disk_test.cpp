#include "engine/host/host_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <vector>

#include "engine/disk_copies.h"
#include "traces/error.h"
#include "traces/test_folder.h"

namespace offprof {
namespace {

constexpr Bytes kBytes = 100'000;

class HostDiskTest : public testing::Test {
 protected:
  HostDiskTest() : disk_({folder_.path(), /*checksums=*/true, {}}, d2h_, h2d_, exposed_ns_) {}

  Extent reserve() { return disk_.reserve(kBytes, nullptr).value(); }
  static std::vector<std::byte> filled_with(int value) {
    return std::vector<std::byte>(kBytes, static_cast<std::byte>(value));
  }

  TestFolder folder_;
  Nanoseconds exposed_ns_ = 0;
  CopyStream d2h_{Link{}}, h2d_{Link{}};
  HostDisk disk_;
};

TEST_F(HostDiskTest, WritesWhatTheQueueWasGivenBefore) {
  const Extent extent = reserve();
  std::vector<std::byte> buffer = filled_with(0), back = filled_with(0);
  std::promise<void> go;
  d2h_.call([&] {
    go.get_future().wait();
    std::ranges::fill(buffer, std::byte{7});
  });
  const auto written = disk_.write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 0);
  go.set_value();
  disk_.wait(written);
  disk_.wait(disk_.read(extent, back.data(), kBytes, 0));
  EXPECT_EQ(back, filled_with(7));
}

TEST_F(HostDiskTest, AQueueThatIsHeldGoesOnWithWhatWasRead) {
  const Extent extent = reserve();
  const std::vector<std::byte> buffer = filled_with(3);
  std::vector<std::byte> back = filled_with(0), copied = filled_with(0);
  disk_.wait(disk_.write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 0));
  const auto read = disk_.read(extent, back.data(), kBytes, 0);
  disk_.hold(CopyQueue::kH2d, read);
  h2d_.wait(h2d_.call([&] { copied = back; }));
  EXPECT_EQ(copied, buffer);
  disk_.check(read);
}

TEST_F(HostDiskTest, RecordsBearTheirTags) {
  const Extent extent = reserve();
  std::vector<std::byte> buffer = filled_with(1);
  disk_.wait(disk_.write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 5));
  const std::vector<DiskRecord> records = disk_.take_records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].tag, 5);
  EXPECT_EQ(records[0].bytes, kBytes);
}

/// A disk that takes one copy, and fails what the test says.
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
  void check(const Transfer&) override {
    if (fails) throw environment_error("the disk fails");
  }
  std::vector<DiskRecord> take_records() override { return {}; }
  std::string warning() const override { return {}; }
  std::string description() const override { return "fake"; }

  bool is_taken = false, fails = false;
  int under_way = 0, holds = 0;

 private:
  Transfer begin() {
    ++under_way;
    return std::make_shared<DiskTransfer>();
  }
};

Command of_copy(CommandKind kind, CopyId copy) {
  return {kind, copy, copy, kBytes};
}

TEST(DiskCopies, CountsWhatIsThereAndWhatWent) {
  FakeDisk disk;
  DiskCopies copies(&disk);
  EXPECT_TRUE(copies.take(of_copy(CommandKind::kTakeDisk, 3)));
  copies.write(of_copy(CommandKind::kWriteDisk, 3), nullptr, CopyQueue::kD2h);
  copies.wait(3);
  copies.read(of_copy(CommandKind::kReadDisk, 3), nullptr);
  copies.hold_for_read(3, CopyQueue::kH2d);
  copies.free(of_copy(CommandKind::kFreeDisk, 3));
  EXPECT_EQ(disk.holds, 1);
  EXPECT_EQ(copies.peak_bytes(), kBytes);
  EXPECT_EQ(copies.write_bytes(), kBytes);
  EXPECT_EQ(copies.read_bytes(), kBytes);
  EXPECT_FALSE(disk.is_taken);
}

TEST(DiskCopies, AFullDiskIsARefusalThatIsCounted) {
  FakeDisk disk;
  disk.is_taken = true;
  DiskCopies copies(&disk);
  EXPECT_FALSE(copies.take(of_copy(CommandKind::kTakeDisk, 0)));
  EXPECT_EQ(copies.refusals(), 1);
}

TEST(DiskCopies, WithoutADiskIsAnError) {
  DiskCopies copies(nullptr);
  EXPECT_THROW(copies.take(of_copy(CommandKind::kTakeDisk, 0)), Error);
}

TEST(DiskCopies, NoQueueIsHeldForWhatNeverLeftHostMemory) {
  FakeDisk disk;
  DiskCopies copies(&disk);
  copies.take(of_copy(CommandKind::kTakeDisk, 0));
  copies.write(of_copy(CommandKind::kWriteDisk, 0), nullptr, CopyQueue::kD2h);
  copies.hold_for_read(0, CopyQueue::kH2d);
  copies.hold_for_read(1, CopyQueue::kH2d);  // which is not on the disk
  EXPECT_EQ(disk.holds, 0);
}

TEST(DiskCopies, AFailedReadIsToldWhereTheCopyInIsWaitedFor) {
  FakeDisk disk;
  DiskCopies copies(&disk);
  copies.take(of_copy(CommandKind::kTakeDisk, 0));
  copies.read(of_copy(CommandKind::kReadDisk, 0), nullptr);
  disk.fails = true;
  EXPECT_THROW(copies.check_read(0), Error);
}

TEST(DiskCopies, WhatIsLostLeavesNothingUnderWayAndNoSpace) {
  FakeDisk disk;
  {
    DiskCopies copies(&disk);
    copies.take(of_copy(CommandKind::kTakeDisk, 0));
    copies.write(of_copy(CommandKind::kWriteDisk, 0), nullptr, CopyQueue::kD2h);
    disk.fails = true;
    copies.settle(0);
    copies.settle(1);
    EXPECT_EQ(disk.under_way, 0);
  }
  EXPECT_FALSE(disk.is_taken);
}

}  // namespace
}  // namespace offprof
