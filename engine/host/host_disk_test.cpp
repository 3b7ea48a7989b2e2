#include "engine/host/host_disk.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <future>
#include <memory>
#include <optional>
#include <type_traits>
#include <vector>

#include "engine/disk_copies.h"
#include "traces/error.h"
#include "traces/test_folder.h"

namespace offprof {
namespace {

constexpr Bytes kBytes = 100'000;

template <class Disk>
class HostDiskTest : public testing::Test {
 protected:
  void SetUp() override {
    try {
      disk_ = std::make_unique<Disk>(request(), d2h_, h2d_, exposed_ns_);
    } catch (const Error& error) {
      if (!kIsCompressed) throw;
      GTEST_SKIP() << error.what();
    }
  }

  Extent reserve() { return disk_->reserve(kBytes, nullptr).value(); }
  static std::vector<std::byte> filled_with(int value) {
    return std::vector<std::byte>(kBytes, static_cast<std::byte>(value));
  }

  static constexpr bool kIsCompressed = std::is_same_v<Disk, HostCompressedMemory>;
  TestFolder folder_;
  Nanoseconds exposed_ns_ = 0;
  CopyStream d2h_{Link{}}, h2d_{Link{}};
  std::unique_ptr<Disk> disk_;

 private:
  DiskRequest request() const {
    return {.folder = folder_.path(), .checksums = true, .compressed = kIsCompressed};
  }
};

using HostDisks = testing::Types<HostDisk, HostCompressedMemory>;
TYPED_TEST_SUITE(HostDiskTest, HostDisks, );

TYPED_TEST(HostDiskTest, WritesWhatTheQueueWasGivenBefore) {
  const Extent extent = this->reserve();
  std::vector<std::byte> buffer = this->filled_with(0), back = this->filled_with(0);
  std::promise<void> go;
  this->d2h_.call([&] {
    go.get_future().wait();
    std::ranges::fill(buffer, std::byte{7});
  });
  const auto written = this->disk_->write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 0);
  go.set_value();
  this->disk_->wait(written);
  this->disk_->wait(this->disk_->read(extent, back.data(), kBytes, 0));
  EXPECT_EQ(back, this->filled_with(7));
}

TYPED_TEST(HostDiskTest, AQueueThatIsHeldGoesOnWithWhatWasRead) {
  const Extent extent = this->reserve();
  const std::vector<std::byte> buffer = this->filled_with(3);
  std::vector<std::byte> back = this->filled_with(0), copied = this->filled_with(0);
  this->disk_->wait(this->disk_->write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 0));
  const auto read = this->disk_->read(extent, back.data(), kBytes, 0);
  this->disk_->hold(CopyQueue::kH2d, read);
  this->h2d_.wait(this->h2d_.call([&] { copied = back; }));
  EXPECT_EQ(copied, buffer);
  this->disk_->check(read);
}

TYPED_TEST(HostDiskTest, RecordsBearTheirTags) {
  const Extent extent = this->reserve();
  std::vector<std::byte> buffer = this->filled_with(1);
  this->disk_->wait(this->disk_->write(extent, buffer.data(), kBytes, CopyQueue::kD2h, 5));
  const std::vector<DiskRecord> records = this->disk_->take_records();
  ASSERT_EQ(records.size(), 1U);
  EXPECT_EQ(records[0].tag, 5);
  EXPECT_EQ(records[0].bytes, kBytes);
}

/// Its file has what was written, byte by byte; compressed memory has less.
TYPED_TEST(HostDiskTest, OnlyCompressedMemoryTellsWhatIsStored) {
  std::vector<std::byte> buffer = this->filled_with(1);
  this->disk_->wait(this->disk_->write(this->reserve(), buffer.data(), kBytes, CopyQueue::kD2h, 5));
  const std::optional<StoredBytes> stored = this->disk_->take_stored();
  ASSERT_EQ(stored.has_value(), this->kIsCompressed);
  if (!stored) return;
  EXPECT_EQ(stored->given, kBytes);
  EXPECT_LT(stored->stored, kBytes);
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
