#include "engine/devices/host/host_device.h"

#include <gmock/gmock.h>

#include <thread>

#include "engine/copies/cores.h"
#include "tests/support/torch_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using at::Tensor;

Tensor doubles(std::int64_t count) {
  return at::empty({count}, at::TensorOptions(at::kDouble));
}

// Tests of behaviour that only this device has. The conformance suite covers the behaviour of all devices.
class HostDeviceTest : public TorchTest {};

TEST_F(HostDeviceTest, AStorageThatGrowsIsANewAllocation) {
  const AllocationId first = device_.next_allocation();
  Tensor a = doubles(2);
  a.resize_({20});
  EXPECT_EQ(device_.allocation_of(a.storage()), first + 1);
}

TEST_F(HostDeviceTest, ReportsOutOfMemoryOfTheMachine) {
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

TEST_F(HostDeviceTest, ReusesTheLastFreedBlockOfTheSameSize) {
  constexpr std::int64_t kCount = 12'345;
  const Tensor rest = doubles(1'000'000);  // up to this many bytes may be kept
  Tensor a = doubles(kCount), b = doubles(kCount);
  const void *block_a = a.data_ptr(), *block_b = b.data_ptr();
  const AllocationId next = device_.next_allocation();
  b.reset();
  a.reset();
  const Tensor other = doubles(kCount + 1), c = doubles(kCount), d = doubles(kCount);
  EXPECT_EQ(c.data_ptr(), block_a);
  EXPECT_EQ(d.data_ptr(), block_b);
  EXPECT_NE(other.data_ptr(), block_a);
  EXPECT_EQ(device_.allocation_of(d.storage()), next + 2);  // the same memory, a different allocation
}

TEST_F(HostDeviceTest, CountsHostMemoryAndEnforcesItsCapExactly) {
  device_.set_host_capacity(100);
  std::byte* buffer = device_.allocate_host(60);
  EXPECT_EQ(device_.host_used_bytes(), 60);
  EXPECT_THROW(device_.allocate_host(41), Error);
  device_.free_host(buffer, 60);
  EXPECT_EQ(device_.host_used_bytes(), 0);
}

TEST_F(HostDeviceTest, CoresSplitByOneJobAreAvailableToTheNext) {
  const std::vector<int> before = allowed_cores();
  std::vector<int> after;
  std::thread([&] {
    device_.prepare_cores(1);
    device_.prepare_cores(static_cast<int>(before.size()));
    after = allowed_cores();
  }).join();
  EXPECT_EQ(after, before);
}

TEST_F(HostDeviceTest, DescribesItselfWithoutNamingTheMachine) {
  EXPECT_THAT(device_.description(), testing::MatchesRegex("CPU, [0-9]+ cores"));
  EXPECT_EQ(device_.torch_device(), c10::Device(c10::kCPU));
}

}  // namespace
}  // namespace offprof
