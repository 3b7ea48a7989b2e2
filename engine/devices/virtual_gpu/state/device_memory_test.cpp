#include "engine/devices/virtual_gpu/state/address_space.h"

#include <gtest/gtest.h>

#include <cstring>

#include "traces/base/units.h"

namespace offprof {
namespace {

constexpr Bytes kGranule = AddressSpace::kGranule;

struct AddressSpaceTest : testing::Test {
  AddressSpaceTest() { memory.set_limit(16 * kGranule); }

  // Reserves address space and maps memory into its first granules, one mapping each.
  char* mapped(int granules) {
    auto* const begin = static_cast<char*>(memory.reserve(8 * kGranule));
    for (int i = 0; i < granules; ++i) {
      const auto handle = memory.create(kGranule);
      EXPECT_TRUE(memory.map(begin + i * kGranule, kGranule, *handle));
      EXPECT_TRUE(memory.release(*handle));
    }
    return begin;
  }

  AddressSpace memory;
};

TEST_F(AddressSpaceTest, CountsWholeGranules) {
  EXPECT_NE(memory.allocate(1), nullptr);
  EXPECT_EQ(memory.used_bytes(), kGranule);
  EXPECT_NE(memory.allocate(kGranule + 1), nullptr);
  EXPECT_EQ(memory.used_bytes(), 3 * kGranule);
}

TEST_F(AddressSpaceTest, RefusesAllocationsBeyondTheLimit) {
  EXPECT_NE(memory.allocate(16 * kGranule), nullptr);
  EXPECT_EQ(memory.allocate(1), nullptr);
  EXPECT_EQ(memory.used_bytes(), 16 * kGranule);
}

TEST_F(AddressSpaceTest, RefusesAllocationsWhenTheLimitIsBelowTheUse) {
  EXPECT_NE(memory.allocate(4 * kGranule), nullptr);
  memory.set_limit(kGranule);
  EXPECT_EQ(memory.allocate(1), nullptr);
}

TEST_F(AddressSpaceTest, GivesFreedMemoryANewAddress) {
  void* const first = memory.allocate(16 * kGranule);
  EXPECT_EQ(memory.free(first), (AddressRange{static_cast<char*>(first), 16 * kGranule}));
  void* const second = memory.allocate(16 * kGranule);
  EXPECT_LT(second, first);
  EXPECT_FALSE(memory.find(first).has_value());
}

TEST_F(AddressSpaceTest, EachAllocationLiesBelowTheOneBefore) {
  const void* last = memory.allocate(kGranule);
  for (const Bytes bytes : {kGranule, Bytes{1}, 3 * kGranule, kGranule}) {
    const void* const next = memory.allocate(bytes);
    EXPECT_LT(next, last);
    last = next;
  }
}

TEST_F(AddressSpaceTest, RejectsFreeingAnUnknownAddress) {
  auto* const begin = static_cast<char*>(memory.allocate(kGranule));
  EXPECT_FALSE(memory.free(begin + 1).has_value());
  EXPECT_TRUE(memory.free(begin).has_value());
  EXPECT_FALSE(memory.free(begin).has_value());
}

TEST_F(AddressSpaceTest, FindsTheAllocationAroundAnAddress) {
  auto* const begin = static_cast<char*>(memory.allocate(2 * kGranule));
  const AddressRange whole{begin, 2 * kGranule};
  EXPECT_EQ(memory.find(begin), whole);
  EXPECT_EQ(memory.find(begin + 2 * kGranule - 1), whole);
  EXPECT_FALSE(memory.find(begin + 2 * kGranule).has_value());
  EXPECT_FALSE(memory.find(begin - 1).has_value());
}

TEST_F(AddressSpaceTest, DoesNotCountVariables) {
  const void* const variable = memory.place_variable(100);
  EXPECT_EQ(memory.used_bytes(), 0);
  EXPECT_EQ(memory.find(variable)->bytes, 100);
}

TEST_F(AddressSpaceTest, CountsCreatedMemoryButNotAddressSpace) {
  EXPECT_NE(memory.reserve(1000 * kGranule), nullptr);
  EXPECT_EQ(memory.used_bytes(), 0);
  EXPECT_TRUE(memory.create(15 * kGranule).has_value());
  EXPECT_EQ(memory.used_bytes(), 15 * kGranule);
  EXPECT_FALSE(memory.create(2 * kGranule).has_value());
}

TEST_F(AddressSpaceTest, RejectsPartialGranulesInVirtualMemory) {
  EXPECT_EQ(memory.reserve(kGranule + 1), nullptr);
  EXPECT_FALSE(memory.create(kGranule / 2).has_value());
}

TEST_F(AddressSpaceTest, KeepsReleasedMemoryWhileItIsMapped) {
  char* const begin = mapped(1);
  EXPECT_EQ(memory.used_bytes(), kGranule);
  EXPECT_EQ(memory.find(begin), (AddressRange{begin, kGranule}));
  EXPECT_TRUE(memory.unmap(begin, kGranule));
  EXPECT_EQ(memory.used_bytes(), 0);
  EXPECT_FALSE(memory.find(begin).has_value());
}

TEST_F(AddressSpaceTest, KeepsRetainedMemoryAfterItIsUnmapped) {
  char* const begin = mapped(1);
  const auto handle = memory.retain(begin + 5);
  ASSERT_TRUE(handle.has_value());
  EXPECT_TRUE(memory.unmap(begin, kGranule));
  EXPECT_EQ(memory.used_bytes(), kGranule);
  EXPECT_TRUE(memory.release(*handle));
  EXPECT_EQ(memory.used_bytes(), 0);
}

TEST_F(AddressSpaceTest, MapsOnlyIntoFreeReservedAddresses) {
  char* const begin = mapped(1);
  const auto handle = memory.create(kGranule);
  EXPECT_FALSE(memory.map(begin, kGranule, *handle));
  EXPECT_FALSE(memory.map(begin + 8 * kGranule, kGranule, *handle));
  EXPECT_FALSE(memory.map(begin + kGranule, 2 * kGranule, *handle));
  EXPECT_FALSE(memory.map(begin + kGranule, kGranule, *handle + 1));
  EXPECT_TRUE(memory.map(begin + kGranule, kGranule, *handle));
}

TEST_F(AddressSpaceTest, UnmapsWholeMappingsOnly) {
  char* const begin = mapped(3);
  EXPECT_TRUE(memory.is_mapped(begin, 3 * kGranule));
  EXPECT_FALSE(memory.is_mapped(begin, 4 * kGranule));
  EXPECT_FALSE(memory.unmap(begin, kGranule / 2));
  EXPECT_FALSE(memory.unmap(begin, 4 * kGranule));
  EXPECT_TRUE(memory.unmap(begin, 2 * kGranule));
  EXPECT_EQ(memory.used_bytes(), kGranule);
}

TEST_F(AddressSpaceTest, ReleasesOnlyAReservationWithoutMappings) {
  char* const begin = mapped(1);
  EXPECT_FALSE(memory.release_reservation(begin, 8 * kGranule));
  EXPECT_TRUE(memory.unmap(begin, kGranule));
  EXPECT_FALSE(memory.release_reservation(begin, kGranule));
  EXPECT_TRUE(memory.release_reservation(begin, 8 * kGranule));
}

TEST_F(AddressSpaceTest, BacksAllocationsWhenItIsReal) {
  void* const before = memory.allocate(kGranule);
  memory.set_real(true);
  std::memset(before, 1, kGranule);
  auto* const after = static_cast<char*>(memory.allocate(kGranule));
  EXPECT_EQ(after[kGranule - 1], 0);
  std::memset(mapped(1), 1, kGranule);
  EXPECT_TRUE(memory.free(after).has_value());
}

}  // namespace
}  // namespace offprof
