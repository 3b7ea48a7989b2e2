#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>
#include <vector>

#include "engine/storage/disk_edges.h"
#include "engine/storage/disk_tier.h"
#include "tests/support/disk_pattern.h"
#include "tests/support/machine_under_test.h"
#include "tests/support/test_folder.h"

namespace offprof {

/// Runs a test on every kind of disk tier that this build has: backend, I/O mode, checksums. A test is
/// skipped only if the machine itself refuses io_uring or direct I/O, which is checked without our code.
class EveryDiskTier : public testing::TestWithParam<std::tuple<DiskBackend, DirectIo, bool>> {
 protected:
  void SetUp() override {
    const auto [backend, direct_io, checksums] = GetParam();
    if (backend == DiskBackend::kIoUring)
      if (const std::string why = why_kernel_has_no_io_uring(); !why.empty()) GTEST_SKIP() << why;
    if (direct_io == DirectIo::kAuto) {
      if (const std::string why = why_no_direct_io(folder_.path()); !why.empty()) GTEST_SKIP() << why;
      ASSERT_EQ(DiskTier(folder_.path()).facts().why_buffered, "");
    }
  }

  /// Returns options with small pieces, so that a small transfer has many.
  DiskTierOptions options() const {
    DiskTierOptions options;
    std::tie(options.backend, options.direct_io, options.checksums) = GetParam();
    options.piece_bytes = 8 * kKiB;
    options.queue_depth = 3;
    return options;
  }

  TestFolder folder_;
};

inline std::string name_of_disk_tier(const testing::TestParamInfo<EveryDiskTier::ParamType>& info) {
  const auto [backend, direct_io, checksums] = info.param;
  return std::string(backend == DiskBackend::kIoUring ? "IoUring" : "Threads") +
         (direct_io == DirectIo::kAuto ? "Direct" : "Buffered") + (checksums ? "Checksums" : "");
}

template <typename Checksums>
auto every_disk_tier(Checksums checksums) {
  std::vector<DiskBackend> backends = {DiskBackend::kThreads};
  if (has_io_uring_queue()) backends.insert(backends.begin(), DiskBackend::kIoUring);
  return testing::Combine(testing::ValuesIn(backends), testing::Values(DirectIo::kAuto, DirectIo::kOff),
                          checksums);
}

}  // namespace offprof
