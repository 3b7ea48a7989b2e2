// Tests a disk that fails, comes up short or returns wrong data, at every request of a small workload. The
// result must be exact data or an Error that reports the fault.

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <iterator>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/support/disk_tier_under_test.h"
#include "tests/support/faulty_disk.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::AllOf;
using testing::AnyOf;
using testing::Each;
using testing::HasSubstr;
using testing::IsEmpty;

using Kind = DiskFault::Kind;

constexpr Bytes kSizes[] = {20'000, 8 * kKiB, 700};
constexpr std::int64_t kNever = -1;

std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

std::ptrdiff_t open_files() {
  return entries_of("/proc/self/fd");
}

class DiskFaults : public EveryDiskTier {
 protected:
  /// Writes and then reads each extent, two rounds. Returns the errors and counts the requests.
  std::vector<std::string> run(DiskFault fault, std::int64_t at, bool stays = false) {
    requests_ = 0;
    DiskEdges edges;
    edges.wrap_queue = [&](std::unique_ptr<DiskQueue> queue) {
      return std::make_unique<FaultyQueue>(std::move(queue), fault, at, stays, requests_);
    };
    std::vector<std::string> errors;
    DiskTier tier(folder_.path(), options(), edges);
    for (unsigned round = 0; round < 2; ++round) {
      for (const Bytes bytes : kSizes) transfer(tier, bytes, round, errors);
    }
    return errors;
  }

  std::int64_t requests_of_a_run() {
    EXPECT_THAT(run({}, kNever), IsEmpty());
    return requests_;
  }

 private:
  static void transfer(DiskTier& tier, Bytes bytes, unsigned seed, std::vector<std::string>& errors) {
    const auto data = disk_pattern(bytes, seed);
    std::vector<std::byte> back(data.size());
    const Extent extent = tier.reserve(bytes).value();
    const auto write = tier.write(extent, data.data(), bytes), read = tier.read(extent, back.data(), bytes);
    const bool written = wait(tier, write, errors);
    const bool was_read = wait(tier, read, errors);
    EXPECT_TRUE(!was_read || back == data);
    EXPECT_FALSE(was_read && !written) << "read data whose write failed";
    tier.release(extent);
  }

  static bool wait(const DiskTier& tier, DiskTier::Ticket ticket, std::vector<std::string>& errors) {
    try {
      tier.wait(ticket);
      return true;
    } catch (const Error& error) {
      EXPECT_FALSE(error.hint().empty());
      errors.emplace_back(error.what());
      return false;
    }
  }

  std::int64_t requests_ = 0;
};

TEST_P(DiskFaults, AFailingRequestIsReported) {
  const std::int64_t requests = requests_of_a_run();
  for (const int error : {EIO, ENOSPC, ENOMEM}) {
    for (std::int64_t at = 0; at < requests; ++at) {
      const auto errors = run({Kind::kFails, -error}, at);
      EXPECT_THAT(errors, testing::Not(IsEmpty())) << at;
      EXPECT_THAT(errors, Each(AllOf(HasSubstr("at offset "), HasSubstr(folder_.path()),
                                     HasSubstr(std::strerror(error)))));
    }
  }
}

TEST_P(DiskFaults, ContinuesAfterAShortRequest) {
  const std::int64_t requests = requests_of_a_run();
  for (const Bytes bytes : {512, 513, 4096}) {
    // A result below the alignment of the disk is no progress, however often it comes.
    if (bytes < DiskTier(folder_.path(), options()).facts().offset_alignment) continue;
    for (std::int64_t at = 0; at < requests; ++at)
      EXPECT_THAT(run({Kind::kShort, bytes}, at), IsEmpty()) << at;
  }
}

TEST_P(DiskFaults, EveryRequestMayBeShort) {
  const Bytes alignment = DiskTier(folder_.path(), options()).facts().offset_alignment;
  EXPECT_THAT(run({Kind::kShort, alignment + 400}, 0, true), IsEmpty());
}

TEST_P(DiskFaults, RetriesInterruptedRequests) {
  const std::int64_t requests = requests_of_a_run();
  for (const std::int64_t number : {-EINTR, -EAGAIN, 0}) {
    for (std::int64_t at = 0; at < requests; ++at)
      EXPECT_THAT(run({Kind::kFails, number}, at), IsEmpty()) << at;
  }
}

TEST_P(DiskFaults, ADiskWithoutProgressFails) {
  for (const std::int64_t number : {-EAGAIN, 0})
    EXPECT_THAT(run({Kind::kFails, number}, 5, true), testing::Not(IsEmpty())) << number;
}

TEST_P(DiskFaults, APermanentFailureFailsEveryTransfer) {
  EXPECT_EQ(run({Kind::kFails, -EIO}, 0, true).size(), 4 * std::size(kSizes));
}

class DiskChecksums : public DiskFaults {};

TEST_P(DiskChecksums, DetectCorruptReads) {
  const std::int64_t requests = requests_of_a_run();
  std::size_t found = 0;
  for (std::int64_t at = 0; at < requests; ++at) {
    const auto errors = run({Kind::kCorrupt}, at);
    EXPECT_THAT(errors, Each(HasSubstr("checksum")));
    found += errors.size();
  }
  EXPECT_EQ(found, static_cast<std::size_t>(requests) / 2)
      << "one error for each read; writes are not corrupted";
}

TEST_P(DiskFaults, AnExtentCanBeRewrittenAfterAFailedWrite) {
  std::int64_t requests = 0;
  DiskEdges edges;
  edges.wrap_queue = [&](std::unique_ptr<DiskQueue> queue) {
    return std::make_unique<FaultyQueue>(std::move(queue), DiskFault{Kind::kFails, -EIO}, 0, false, requests);
  };
  DiskTier tier(folder_.path(), options(), edges);
  const auto data = disk_pattern(20'000, 1);
  const auto extent = tier.reserve(20'000);
  const auto failing = tier.write(*extent, data.data(), 20'000);
  EXPECT_THROW(tier.wait(failing), Error);
  EXPECT_THROW(tier.wait(failing), Error) << "the second wait must throw too";
  EXPECT_TRUE(tier.is_done(failing));
  EXPECT_THAT(tier.take_records(), IsEmpty());
  tier.wait(tier.write(*extent, data.data(), 20'000));
  std::vector<std::byte> back(20'000);
  tier.wait(tier.read(*extent, back.data(), 20'000));
  EXPECT_EQ(back, data);
}

INSTANTIATE_TEST_SUITE_P(, DiskFaults, every_disk_tier(testing::Bool()), name_of_disk_tier);
INSTANTIATE_TEST_SUITE_P(, DiskChecksums, every_disk_tier(testing::Values(true)), name_of_disk_tier);

/// Creates a tier and reserves twice. Returns the error, or why a reservation was refused; empty: no failure.
std::string make_and_reserve(const std::string& folder, const std::shared_ptr<FaultyCalls>& calls) {
  DiskEdges edges;
  edges.calls = calls;
  try {
    DiskTier tier(folder, {}, edges);
    std::string why_not;
    for (int i = 0; i < 2; ++i) {
      const auto extent = tier.reserve(10'000, &why_not);
      if (!extent) return why_not;
      const auto data = disk_pattern(10'000, 1);
      std::vector<std::byte> back(data.size());
      tier.write(*extent, data.data(), 10'000);
      tier.wait(tier.read(*extent, back.data(), 10'000));
      EXPECT_EQ(back, data);
    }
    return {};
  } catch (const Error& error) {
    EXPECT_FALSE(error.hint().empty()) << error.what();
    return error.what();
  }
}

TEST(DiskSpaceFaults, AFailingCallIsHandledOrReportedAndLeavesNothing) {
  const TestFolder folder;
  const auto counting = std::make_shared<FaultyCalls>(kNever, 0);
  EXPECT_EQ(make_and_reserve(folder.path(), counting), "");
  const std::ptrdiff_t files = open_files();
  for (const int error : {EIO, ENOSPC, EDQUOT, EFBIG, EINVAL, EMFILE, EOPNOTSUPP, EACCES, EROFS}) {
    for (std::int64_t at = 0; at < counting->count() + 2; ++at) {
      const std::string outcome = make_and_reserve(folder.path(), std::make_shared<FaultyCalls>(at, error));
      EXPECT_THAT(outcome, AnyOf(IsEmpty(), AllOf(HasSubstr(folder.path()), HasSubstr(std::strerror(error)))))
          << at;
    }
  }
  EXPECT_EQ(open_files(), files);
  EXPECT_TRUE(folder.files().empty());
}

/// System calls, among which allocation fails with the given error.
class FailingAllocation final : public FileCalls {
 public:
  explicit FailingAllocation(int error) : error_(error) {}
  int allocate(int /*fd*/, Bytes /*offset*/, Bytes /*bytes*/) override { return -error_; }

 private:
  int error_;
};

DiskEdges with(std::shared_ptr<FileCalls> calls) {
  DiskEdges edges;
  edges.calls = std::move(calls);
  return edges;
}

TEST(DiskSpaceFaults, AFullDiskRefusesWithAReason) {
  const TestFolder folder;
  for (const int error : {ENOSPC, EDQUOT, EFBIG}) {
    DiskTier tier(folder.path(), {}, with(std::make_shared<FailingAllocation>(error)));
    std::string why_not;
    EXPECT_EQ(tier.reserve(5000, &why_not), std::nullopt);
    EXPECT_THAT(why_not, AllOf(HasSubstr("no room for another 8.00 KiB"), HasSubstr(folder.path()),
                               HasSubstr(std::strerror(error))));
    EXPECT_EQ(tier.used_bytes(), 0);
    EXPECT_EQ(tier.file_bytes(), 0);
  }
}

TEST(DiskSpaceFaults, AFailingDiskIsAnError) {
  const TestFolder folder;
  DiskTier tier(folder.path(), {}, with(std::make_shared<FailingAllocation>(EIO)));
  EXPECT_THROW(tier.reserve(5000), Error);
}

TEST(DiskSpaceFaults, WritesZerosIfTheFileSystemHasNoFallocate) {
  const TestFolder folder;
  DiskTier tier(folder.path(), {}, with(std::make_shared<FailingAllocation>(EOPNOTSUPP)));
  const auto extent = tier.reserve(3 * kMiB + 1);
  ASSERT_TRUE(extent);
  const auto data = disk_pattern(3 * kMiB + 1, 1);
  std::vector<std::byte> back(data.size());
  tier.write(*extent, data.data(), extent->bytes);
  tier.wait(tier.read(*extent, back.data(), extent->bytes));
  EXPECT_EQ(back, data);
}

}  // namespace
}  // namespace offprof
