#include "simulator/replay/virtual_memory.h"

#include <gtest/gtest.h>

#include <vector>

namespace offprof {
namespace {

const std::vector<Bytes> kStorages = {100, 20};

TEST(VirtualMemory, BeginsWithTheResidentBytes) {
  const VirtualMemory memory(kStorages, 500);
  EXPECT_EQ(memory.live_bytes(), 500);
  EXPECT_EQ(memory.peak_bytes(), 500);
  EXPECT_FALSE(memory.is_live(0));
}

TEST(VirtualMemory, AStorageLivesFromItsFirstToItsLastHolder) {
  VirtualMemory memory(kStorages, 0);
  memory.hold(0);
  memory.hold(0);
  EXPECT_EQ(memory.live_bytes(), 100);
  memory.free_unpacked(0);
  EXPECT_EQ(memory.live_bytes(), 100);
  memory.free_unpacked(0);
  EXPECT_EQ(memory.live_bytes(), 0);
}

TEST(VirtualMemory, RemembersThePeak) {
  VirtualMemory memory(kStorages, 0);
  memory.hold(0);
  memory.free_unpacked(0);
  memory.hold(1);
  EXPECT_EQ(memory.peak_bytes(), 100);
}

TEST(VirtualMemory, AResidentIsNotCountedTwice) {
  VirtualMemory memory(kStorages, 500);
  memory.hold_resident(0);
  EXPECT_EQ(memory.live_bytes(), 500);
  memory.free_unpacked(0);
  EXPECT_EQ(memory.live_bytes(), 400);
}

TEST(VirtualMemory, AllocatesStoragesUnknownToTheProgram) {
  VirtualMemory memory(kStorages, 0);
  const VirtualMemory::Storage storage = memory.allocate(7);
  EXPECT_EQ(storage, 2);
  EXPECT_EQ(memory.bytes(storage), 7);
  EXPECT_EQ(memory.live_bytes(), 7);
  memory.free_unpacked(storage);
  EXPECT_FALSE(memory.is_live(storage));
}

TEST(VirtualMemoryDeathTest, ReleasingAStorageWithoutHoldersIsABug) {
  VirtualMemory memory(kStorages, 0);
  EXPECT_DEATH(memory.free_unpacked(0), "check failed");
}

}  // namespace
}  // namespace offprof
