#include "engine/devices/virtual_gpu/state/pinned_memory.h"

#include <gtest/gtest.h>

#include <vector>

#include "traces/base/units.h"

namespace offprof {
namespace {

TEST(PinnedMemory, TakesNoMemoryUntilItIsTouched) {
  PinnedMemory memory;
  auto* const begin = static_cast<char*>(memory.allocate(1024 * kGiB));
  ASSERT_NE(begin, nullptr);
  EXPECT_EQ(memory.pinned_bytes(), 1024 * kGiB);
  EXPECT_EQ(begin[700 * kGiB], 0);
}

TEST(PinnedMemory, FindsThePieceAroundAnAddress) {
  PinnedMemory memory;
  auto* const begin = static_cast<char*>(memory.allocate(100));
  EXPECT_EQ(memory.find(begin + 99), (AddressRange{begin, 100}));
  EXPECT_FALSE(memory.find(begin + 100).has_value());
}

TEST(PinnedMemory, FreesAnAllocationOnce) {
  PinnedMemory memory;
  void* const begin = memory.allocate(100);
  EXPECT_TRUE(memory.free(begin).has_value());
  EXPECT_FALSE(memory.free(begin).has_value());
  EXPECT_EQ(memory.pinned_bytes(), 0);
}

TEST(PinnedMemory, RegistersMemoryOfAnotherOwner) {
  PinnedMemory memory;
  std::vector<char> owned(1000);
  EXPECT_TRUE(memory.register_range(owned.data(), 1000));
  EXPECT_EQ(memory.find(owned.data() + 500), (AddressRange{owned.data(), 1000}));
  EXPECT_FALSE(memory.free(owned.data()).has_value());
  EXPECT_TRUE(memory.unregister(owned.data()).has_value());
  EXPECT_FALSE(memory.find(owned.data()).has_value());
}

TEST(PinnedMemory, RejectsPinningTwice) {
  PinnedMemory memory;
  std::vector<char> owned(1000);
  EXPECT_TRUE(memory.register_range(owned.data() + 100, 100));
  EXPECT_FALSE(memory.register_range(owned.data(), 101));
  EXPECT_FALSE(memory.register_range(owned.data() + 199, 10));
  EXPECT_TRUE(memory.register_range(owned.data(), 100));
  EXPECT_TRUE(memory.register_range(owned.data() + 200, 10));
}

TEST(PinnedMemory, RejectsUnregisteringAnAllocation) {
  PinnedMemory memory;
  EXPECT_FALSE(memory.unregister(memory.allocate(100)).has_value());
}

}  // namespace
}  // namespace offprof
