// Tests of the pool with a fake CUDA, which pins as much memory as a test allows.
#include "engine/devices/cuda/pinned_pool.h"

#include <cuda_runtime_api.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <cstring>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "traces/base/error.h"

namespace {

/// State of the fake CUDA.
struct FakeCuda {
  int slabs_left = 0;  ///< number of slabs that it still pins
  cudaError_t last_error = cudaSuccess;
  std::set<void*> pinned;
};

FakeCuda fake;

}  // namespace

extern "C" {

cudaError_t cudaHostAlloc(void** memory, std::size_t bytes, unsigned) {
  if (fake.slabs_left-- <= 0) return fake.last_error = cudaErrorMemoryAllocation;
  *memory = std::aligned_alloc(512, bytes);
  fake.pinned.insert(*memory);
  return cudaSuccess;
}

cudaError_t cudaFreeHost(void* memory) {
  if (fake.pinned.erase(memory) == 0) return fake.last_error = cudaErrorInvalidValue;
  std::free(memory);
  return cudaSuccess;
}

cudaError_t cudaGetLastError() {
  return std::exchange(fake.last_error, cudaSuccess);
}

}  // extern "C"

namespace offprof {
namespace {

using testing::AllOf;
using testing::HasSubstr;

class PinnedPoolTest : public testing::Test {
 protected:
  PinnedPoolTest() { fake = {.slabs_left = 1000, .last_error = cudaSuccess, .pinned = {}}; }
  ~PinnedPoolTest() override {
    pool_.reset();
    EXPECT_TRUE(fake.pinned.empty()) << "pinned memory was not freed";
    EXPECT_EQ(fake.last_error, cudaSuccess) << "the next call would report it";
  }

  static std::string message_of(const std::function<void()>& call) {
    try {
      call();
    } catch (const Error& error) {
      EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
      return std::string(error.what()) + " | " + error.hint();
    }
    return {};
  }

  PinnedPool& pool() { return *pool_; }

 private:
  std::optional<PinnedPool> pool_{std::in_place};
};

TEST_F(PinnedPoolTest, CutsPiecesFromPinnedMemory) {
  std::byte* const piece = pool().allocate(1000);
  EXPECT_EQ(fake.pinned.size(), 1U);
  EXPECT_FALSE(pool().fell_back());
  pool().free(piece, 1000);
}

TEST_F(PinnedPoolTest, UsesPageableMemoryIfCudaPinsNothing) {
  fake.slabs_left = 0;
  std::byte* const piece = pool().allocate(1000);
  std::memset(piece, 1, 1000);
  EXPECT_TRUE(pool().fell_back());
  EXPECT_EQ(pool().used_bytes(), 1000);
  pool().free(piece, 1000);
  EXPECT_EQ(pool().used_bytes(), 0);
}

TEST_F(PinnedPoolTest, KeepsPinnedSlabsIfCudaPinsNoMore) {
  fake.slabs_left = 1;
  std::byte* const pinned = pool().allocate(64 * kMiB);
  EXPECT_FALSE(pool().fell_back());
  std::byte* const pageable = pool().allocate(kMiB);
  EXPECT_TRUE(pool().fell_back());
  EXPECT_EQ(fake.pinned.size(), 1U);
  pool().free(pinned, 64 * kMiB);
  pool().free(pageable, kMiB);
}

TEST_F(PinnedPoolTest, PinsAgainWhenCudaPinsAgain) {
  fake.slabs_left = 0;
  std::byte* const pageable = pool().allocate(64 * kMiB);
  fake.slabs_left = 1;
  std::byte* const pinned = pool().allocate(64 * kMiB);
  EXPECT_EQ(fake.pinned.count(pinned), 1U);
  pool().free(pageable, 64 * kMiB);
  pool().free(pinned, 64 * kMiB);
}

TEST_F(PinnedPoolTest, ReportsThatTheMachineHasNoMemoryLeft) {
  fake.slabs_left = 0;
  constexpr Bytes kMoreThanAddresses = Bytes{1} << 60U;
  EXPECT_THAT(message_of([&] { pool().allocate(kMoreThanAddresses); }),
              AllOf(HasSubstr("host memory for offloaded tensors is exhausted"),
                    HasSubstr("the machine has no more"), HasSubstr("| raise --host-memory")));
  EXPECT_EQ(pool().used_bytes(), 0);
  std::byte* const piece = pool().allocate(1000);  // the pool still works
  pool().free(piece, 1000);
}

TEST_F(PinnedPoolTest, ReportsThatTheCapIsReached) {
  pool().set_cap(1500);
  std::byte* const piece = pool().allocate(1000);
  EXPECT_THAT(message_of([&] { pool().allocate(501); }),
              AllOf(HasSubstr("501 B requested, 1000 B in use"), HasSubstr("the cap is 1.46 KiB")));
  std::byte* const rest = pool().allocate(500);
  pool().free(piece, 1000);
  pool().free(rest, 500);
}

TEST_F(PinnedPoolTest, TrimFreesSlabsWithoutPiecesInUse) {
  std::byte* const first = pool().allocate(64 * kMiB);
  std::byte* const second = pool().allocate(64 * kMiB);
  EXPECT_EQ(pool().trim(), 0);
  pool().free(first, 64 * kMiB);
  EXPECT_EQ(pool().trim(), 64 * kMiB);
  EXPECT_EQ(pool().reserved_bytes(), 64 * kMiB);
  EXPECT_EQ(fake.pinned, (std::set<void*>{second}));
  std::byte* const again = pool().allocate(1000);
  EXPECT_EQ(pool().reserved_bytes(), 128 * kMiB);
  pool().free(second, 64 * kMiB);
  pool().free(again, 1000);
  EXPECT_EQ(pool().trim(), 128 * kMiB);
  EXPECT_EQ(pool().reserved_bytes(), 0);
}

TEST_F(PinnedPoolTest, TrimKeepsASlabWithAPieceInUse) {
  std::byte* const first = pool().allocate(1000);
  std::byte* const second = pool().allocate(1000);
  pool().free(first, 1000);
  EXPECT_EQ(pool().trim(), 0);
  pool().free(second, 1000);
}

TEST_F(PinnedPoolTest, TrimFreesPageableSlabsToo) {
  fake.slabs_left = 0;
  pool().free(pool().allocate(1000), 1000);
  EXPECT_EQ(pool().trim(), 64 * kMiB);
  EXPECT_EQ(pool().reserved_bytes(), 0);
}

TEST_F(PinnedPoolTest, ReservesNoMoreThanASmallCap) {
  pool().set_cap(3 * kMiB);
  std::byte* const piece = pool().allocate(kMiB);
  EXPECT_EQ(pool().reserved_bytes(), 4 * kMiB) << "rounded up to the granule of slabs";
  pool().free(piece, kMiB);
}

/// Pieces of one size that are freed and replaced by pieces of another size leave slabs with one piece in use
/// each.
TEST_F(PinnedPoolTest, SlabsWithGapsExceedTheCapByALimitedAmount) {
  constexpr Bytes kCap = 256 * kMiB, kSmall = 32 * kMiB, kLarge = 48 * kMiB;
  pool().set_cap(kCap);
  std::vector<std::byte*> kept, gaps;
  for (int i = 0; i < 4; ++i) {
    kept.push_back(pool().allocate(kSmall));
    gaps.push_back(pool().allocate(kSmall));
  }
  for (std::byte* const gap : gaps) pool().free(gap, kSmall);
  EXPECT_EQ(pool().reserved_bytes(), kCap);
  std::byte* const large =
      pool().allocate(kLarge);  // it fits no gap, and slabs may exceed the cap by this much
  EXPECT_THAT(message_of([&] { pool().allocate(kLarge); }),
              AllOf(HasSubstr("48.0 MiB requested, 176 MiB in use"), HasSubstr("304 MiB reserved"),
                    HasSubstr("the cap is 256 MiB")));
  for (std::byte* const piece : kept) pool().free(piece, kSmall);
  EXPECT_EQ(pool().trim(), kCap);
  std::byte* const second = pool().allocate(kLarge);
  pool().free(large, kLarge);
  pool().free(second, kLarge);
}

}  // namespace
}  // namespace offprof
