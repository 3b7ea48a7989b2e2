#pragma once

#include <gtest/gtest.h>

#include <string>
#include <tuple>

#include "engine/disk/disk_edges.h"
#include "engine/disk/disk_pattern.h"
#include "engine/disk/disk_tier.h"
#include "traces/test_folder.h"

namespace offprof {

/// Every kind of disk tier that there is: backend, I/O, checksums. What cannot be had here is skipped, and
/// says why.
class EveryDiskTier : public testing::TestWithParam<std::tuple<DiskBackend, DirectIo, bool>> {
 protected:
  void SetUp() override {
    const auto [backend, direct_io, checksums] = GetParam();
    if (std::string why; backend == DiskBackend::kIoUring && make_io_uring_queue(1, why) == nullptr)
      GTEST_SKIP() << "no io_uring here: " << why;
    if (direct_io == DirectIo::kAuto) {
      const DiskTier tier(folder_.path());
      if (!tier.facts().direct_io) GTEST_SKIP() << "no direct I/O here: " << tier.facts().why_buffered;
    }
  }

  /// Small pieces, so that a small transfer has many.
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
  return testing::Combine(testing::Values(DiskBackend::kIoUring, DiskBackend::kThreads),
                          testing::Values(DirectIo::kAuto, DirectIo::kOff), checksums);
}

}  // namespace offprof
