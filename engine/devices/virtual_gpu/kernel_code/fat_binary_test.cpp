#include "engine/devices/virtual_gpu/kernel_code/fat_binary.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdint>
#include <cstring>
#include <string>

namespace offprof {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Optional;

/// Builds a fat binary byte by byte.
class FatBinary {
 public:
  FatBinary() {
    put<std::uint32_t>(0xBA55ED50);
    put<std::uint16_t>(1);
    put<std::uint16_t>(16);
    put<std::uint64_t>(0);
  }

  void add(std::uint16_t kind, std::uint32_t capability, std::uint64_t flags = 0x11, int more_header = 0) {
    put(kind);
    put<std::uint16_t>(0x101);
    put<std::uint32_t>(64 + static_cast<std::uint32_t>(more_header));
    put<std::uint64_t>(24);
    for (int i = 0; i < 3; ++i) put<std::uint32_t>(0);
    put(capability);
    put<std::uint64_t>(0);
    put(flags);
    blob_.append(static_cast<std::size_t>(16 + more_header + 24), '\x50');
    const std::uint64_t bytes = blob_.size() - 16;
    std::memcpy(blob_.data() + 8, &bytes, sizeof bytes);
  }

  std::string& blob() { return blob_; }

  std::vector<GpuCode> read() {
    const Wrapper wrapper{0x466243B1, 1, blob_.data(), nullptr};
    return codes_in(&wrapper);
  }

 private:
  struct Wrapper {
    std::uint32_t magic, version;
    const char* data;
    const void* linked_with;
  };

  template <typename Number>
  void put(Number number) {
    blob_.append(reinterpret_cast<const char*>(&number), sizeof number);
  }

  std::string blob_;
};

constexpr std::uint16_t kPtx = 1, kMachineCode = 2;

TEST(FatBinary, ListsItsCodes) {
  FatBinary binary;
  binary.add(kMachineCode, 86);
  binary.add(kMachineCode, 90, 0x108011);
  binary.add(kMachineCode, 100, 0x1008011, 48);
  binary.add(kPtx, 120);
  EXPECT_THAT(binary.read(),
              ElementsAre(GpuCode{86}, GpuCode{90, false, true}, GpuCode{100}, GpuCode{120, true}));
}

TEST(FatBinary, ListsNothingForAnotherLayout) {
  FatBinary other_magic, other_kind, too_long;
  other_magic.add(kMachineCode, 86);
  other_magic.blob()[0] = 0;
  other_kind.add(kMachineCode, 86);
  other_kind.add(77, 90);
  too_long.add(kMachineCode, 86);
  too_long.blob()[16 + 8] = 100;
  for (FatBinary* binary : {&other_magic, &other_kind, &too_long}) EXPECT_THAT(binary->read(), IsEmpty());
  EXPECT_THAT(codes_in(nullptr), IsEmpty());
}

TEST(BestCode, ChoosesTheNewestCodeUpToTheCard) {
  const std::vector<GpuCode> codes = {{75}, {80}, {86}, {90}, {100}};
  EXPECT_THAT(best_code(codes, 89), Optional(GpuCode{86}));
  EXPECT_THAT(best_code(codes, 80), Optional(GpuCode{80}));
  EXPECT_THAT(best_code(codes, 103), Optional(GpuCode{100}));
  EXPECT_EQ(best_code(codes, 70), std::nullopt);
  EXPECT_EQ(best_code(codes, 110), std::nullopt);
}

TEST(BestCode, ChoosesPtxIfThereIsNoMachineCodeForTheCard) {
  const std::vector<GpuCode> codes = {{70, true}, {80}, {90, true}};
  EXPECT_THAT(best_code(codes, 86), Optional(GpuCode{80}));
  EXPECT_THAT(best_code(codes, 120), Optional(GpuCode{90, true}));
  EXPECT_THAT(best_code(codes, 75), Optional(GpuCode{70, true}));
  EXPECT_EQ(best_code(codes, 61), std::nullopt);
}

TEST(BestCode, ChoosesCodeForOneCardOnlyForThatCard) {
  const std::vector<GpuCode> codes = {{100}, {100, false, true}, {103, false, true}};
  EXPECT_THAT(best_code(codes, 103), Optional(GpuCode{103, false, true}));
  EXPECT_THAT(best_code(codes, 101), Optional(GpuCode{100}));
  EXPECT_EQ(best_code({{90, false, true}}, 91), std::nullopt);
}

}  // namespace
}  // namespace offprof
