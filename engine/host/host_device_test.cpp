#include "engine/host/host_device.h"

#include <gmock/gmock.h>

#include "engine/torch_test.h"
#include "traces/error.h"

namespace offprof {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::HasSubstr;

Tensor doubles(std::int64_t count) {
  return at::empty({count}, at::TensorOptions(at::kDouble));
}

/// Writes down what it is told: ids count from the first.
class Listener final : public AllocationListener {
 public:
  explicit Listener(AllocationId first) : first_(first) {}
  void on_alloc(AllocationId id, Bytes bytes) override { note("alloc", id, bytes); }
  void on_free(AllocationId id, Bytes bytes) override { note("free", id, bytes); }
  const std::vector<std::string>& calls() const { return calls_; }

 private:
  void note(const char* what, AllocationId id, Bytes bytes) {
    calls_.push_back(std::string(what) + " " + std::to_string(id - first_) + " " + std::to_string(bytes));
  }
  AllocationId first_;
  std::vector<std::string> calls_;
};

class HostDeviceTest : public TorchTest {};

// --- Memory with its books ---

TEST_F(HostDeviceTest, CountsWhatTensorsAskFor) {
  const Bytes before = device_.live_bytes();
  {
    const Tensor a = doubles(3), b = at::empty({5}, at::TensorOptions(at::kBool));
    EXPECT_EQ(device_.live_bytes(), before + 24 + 5);
  }
  EXPECT_EQ(device_.live_bytes(), before);
}

TEST_F(HostDeviceTest, PeakIsTheHighestCountSinceItsReset) {
  device_.reset_peak();
  const Bytes before = device_.live_bytes();
  doubles(100);
  doubles(10);
  EXPECT_EQ(device_.peak_bytes(), before + 800);
  device_.reset_peak();
  EXPECT_EQ(device_.peak_bytes(), before);
}

TEST_F(HostDeviceTest, KnowsAStorageHoweverItIsViewed) {
  const AllocationId first = device_.next_allocation();
  const Tensor a = doubles(6), b = doubles(6);
  EXPECT_EQ(device_.allocation_of(a.storage()), first);
  EXPECT_EQ(device_.allocation_of(a.view({2, 3}).t().storage()), first);
  EXPECT_EQ(device_.allocation_of(b.storage()), first + 1);
}

TEST_F(HostDeviceTest, NeverUsesAnIdTwiceThoughAddressesComeBack) {
  Tensor a = doubles(6);
  const auto first = device_.allocation_of(a.storage());
  a = Tensor();
  a = doubles(6);
  EXPECT_EQ(device_.allocation_of(a.storage()), *first + 1);
}

TEST_F(HostDeviceTest, DoesNotKnowForeignOrEmptyMemory) {
  double numbers[4] = {};
  EXPECT_EQ(device_.allocation_of(at::from_blob(numbers, {4}, at::kDouble).storage()), std::nullopt);
  EXPECT_EQ(device_.allocation_of(doubles(0).storage()), std::nullopt);
}

TEST_F(HostDeviceTest, StorageThatGrowsIsANewAllocation) {
  const AllocationId first = device_.next_allocation();
  Tensor a = doubles(2);
  a.resize_({20});
  EXPECT_EQ(device_.allocation_of(a.storage()), first + 1);
}

TEST_F(HostDeviceTest, ListenerIsToldOfEveryAllocationAndFree) {
  Listener listener(device_.next_allocation());
  device_.set_listener(&listener);
  {
    Tensor a = doubles(2);
    const c10::Storage b = device_.allocate(30);
    a = Tensor();
  }
  device_.set_listener(nullptr);
  doubles(1);
  EXPECT_THAT(listener.calls(), ElementsAre("alloc 0 16", "alloc 1 30", "free 0 16", "free 1 30"));
}

TEST_F(HostDeviceTest, AllocatesUninitialisedBytesForTheEngine) {
  const Bytes before = device_.live_bytes();
  const c10::Storage storage = device_.allocate(100);
  EXPECT_EQ(storage.nbytes(), 100U);
  EXPECT_NE(storage.mutable_data(), nullptr);
  EXPECT_EQ(device_.live_bytes(), before + 100);
}

TEST_F(HostDeviceTest, CapacityIsARealOutOfMemory) {
  const Bytes before = device_.live_bytes();
  device_.set_capacity(before + 100);
  const Tensor fits = doubles(12);
  EXPECT_THROW(doubles(1), c10::OutOfMemoryError);
  const auto refusal = device_.take_out_of_memory();
  device_.set_capacity(std::nullopt);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->asked_bytes, 8);
  EXPECT_EQ(refusal->live_bytes, before + 96);
  EXPECT_EQ(refusal->capacity_bytes, before + 100);
  EXPECT_EQ(device_.live_bytes(), before + 96);
  EXPECT_EQ(device_.take_out_of_memory(), std::nullopt);
}

TEST_F(HostDeviceTest, WhatTheMachineLacksIsOutOfMemoryToo) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer aborts on such an allocation";
#else
  const Bytes before = device_.live_bytes();
  EXPECT_THROW(doubles(std::int64_t{1} << 55), c10::OutOfMemoryError);
  EXPECT_EQ(device_.live_bytes(), before);
  const auto refusal = device_.take_out_of_memory();
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->capacity_bytes, std::nullopt);
#endif
}

TEST_F(HostDeviceTest, MemoryIsAlignedForVectorKernels) {
  for (const std::int64_t count : {1, 3, 100, 5000})
    EXPECT_EQ(reinterpret_cast<std::uintptr_t>(doubles(count).data_ptr()) % 64, 0U) << count;
}

// --- Host memory and copies ---

TEST_F(HostDeviceTest, HostMemoryHasACap) {
  device_.set_host_capacity(100);
  std::byte* buffer = device_.allocate_host(60);
  EXPECT_EQ(device_.host_used_bytes(), 60);
  EXPECT_THAT(message_of<Error>([&] { device_.allocate_host(50); }),
              HasSubstr("50 B asked for, 60 B in use"));
  EXPECT_THAT(device_.take_host_refusal()->what(), HasSubstr("50 B asked for"));
  EXPECT_FALSE(device_.take_host_refusal().has_value());
  device_.free_host(buffer, 60);
  EXPECT_EQ(device_.host_used_bytes(), 0);
}

TEST_F(HostDeviceTest, CalibrationLeavesNothingBehind) {
  const Bytes before = device_.live_bytes();
  const Link link = device_.calibrate_link();
  for (const LinkDirection& direction : {link.d2h, link.h2d}) {
    EXPECT_GT(direction.bytes_per_second, 0);
    EXPECT_GE(direction.latency_ns, 0);
  }
  EXPECT_EQ(device_.live_bytes(), before);
  EXPECT_EQ(device_.host_used_bytes(), 0);
  EXPECT_TRUE(device_.take_copy_records().empty());
}

TEST_F(HostDeviceTest, DescribesItselfWithoutNamingTheMachine) {
  EXPECT_THAT(device_.description(), testing::MatchesRegex("CPU, [0-9]+ cores"));
  EXPECT_EQ(device_.torch_device(), c10::Device(c10::kCPU));
}

}  // namespace
}  // namespace offprof
