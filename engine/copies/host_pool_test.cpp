#include "engine/copies/host_pool.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::HasSubstr;

TEST(HostPool, ReusesAFreedBufferForTheSameSize) {
  HostPool pool;
  std::byte* const buffer = pool.allocate(100);
  pool.free(buffer, 100);
  EXPECT_EQ(pool.allocate(100), buffer);
  EXPECT_EQ(pool.reserved_bytes(), 100);
  pool.free(buffer, 100);
}

TEST(HostPool, DoesNotReuseAFreedBufferForAnotherSize) {
  HostPool pool;
  pool.free(pool.allocate(100), 100);
  pool.free(pool.allocate(99), 99);
  EXPECT_EQ(pool.reserved_bytes(), 199);
}

TEST(HostPool, GivesEachRequestItsOwnBuffer) {
  HostPool pool;
  std::byte* const first = pool.allocate(100);
  std::byte* const second = pool.allocate(100);
  EXPECT_NE(first, second);
  pool.free(first, 100);
  pool.free(second, 100);
}

TEST(HostPool, CountsUsedAndReservedBytes) {
  HostPool pool;
  std::byte* const first = pool.allocate(100);
  pool.free(pool.allocate(50), 50);
  EXPECT_EQ(pool.used_bytes(), 100);
  EXPECT_EQ(pool.reserved_bytes(), 150);
  pool.free(first, 100);
  EXPECT_EQ(pool.used_bytes(), 0);
}

TEST(HostPool, KeepsThePeakUntilItIsReset) {
  HostPool pool;
  std::byte* const first = pool.allocate(100);
  pool.free(pool.allocate(50), 50);
  EXPECT_EQ(pool.peak_bytes(), 150);
  pool.reset_peak();
  EXPECT_EQ(pool.peak_bytes(), 100);
  pool.free(first, 100);
}

TEST(HostPool, ServesUpToItsCap) {
  HostPool pool(100);
  std::byte* const buffer = pool.allocate(100);
  EXPECT_EQ(pool.used_bytes(), 100);
  pool.free(buffer, 100);
}

TEST(HostPool, RefusesBeyondItsCapAndReportsTheUse) {
  HostPool pool(100);
  std::byte* const buffer = pool.allocate(60);
  try {
    pool.allocate(41);
    ADD_FAILURE() << "41 bytes and 60 bytes exceed the cap of 100";
  } catch (const Error& error) {
    EXPECT_EQ(error.kind(), ErrorKind::kEnvironment);
    EXPECT_THAT(error.what(), HasSubstr("41 B requested, 60 B in use"));
    EXPECT_THAT(error.hint(), HasSubstr("--host-memory"));
  }
  pool.free(buffer, 60);
}

TEST(HostPool, ContinuesAfterARefusal) {
  HostPool pool(100);
  std::byte* const buffer = pool.allocate(60);
  EXPECT_THROW(pool.allocate(41), Error);
  EXPECT_EQ(pool.used_bytes(), 60);
  EXPECT_EQ(pool.peak_bytes(), 60);
  pool.free(buffer, 60);
  EXPECT_EQ(pool.allocate(60), buffer);
  pool.free(buffer, 60);
}

TEST(HostPool, FreesIdleBuffersBeforeItRefuses) {
  HostPool pool(100);
  pool.free(pool.allocate(60), 60);
  std::byte* const buffer = pool.allocate(100);
  EXPECT_EQ(pool.reserved_bytes(), 100);
  pool.free(buffer, 100);
}

TEST(HostPool, NewCapAppliesToBuffersReservedBefore) {
  HostPool pool;
  pool.free(pool.allocate(60), 60);
  pool.set_cap(50);
  EXPECT_EQ(pool.reserved_bytes(), 0);
  EXPECT_THROW(pool.allocate(60), Error);
}

TEST(HostPool, RefusesMoreThanTheMachineHas) {
#ifdef __SANITIZE_ADDRESS__
  GTEST_SKIP() << "the address sanitizer aborts on such an allocation";
#else
  HostPool pool;
  pool.free(pool.allocate(60), 60);
  EXPECT_THROW(pool.allocate(Bytes{1} << 60), Error);
  EXPECT_EQ(pool.reserved_bytes(), 0);  // idle buffers were freed first
#endif
}

}  // namespace
}  // namespace offprof
