// Tests the disk tier and the process: its resources, what remains after a kill, and limits on the process.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <chrono>
#include <csignal>
#include <cstddef>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/disk_tier_under_test.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

std::ptrdiff_t entries_of(const char* folder) {
  return std::distance(std::filesystem::directory_iterator(folder), {});
}

class DiskTierProcess : public EveryDiskTier {
 protected:
  /// Writes and reads, and calls `progress` after each transfer.
  template <typename Progress>
  void work(int rounds, Progress progress) {
    DiskTier tier(folder_.path(), options());
    const auto data = disk_pattern(100'000, 1);
    std::vector<std::byte> back(data.size());
    for (int i = 0; i < rounds; ++i) {
      const Extent extent = tier.reserve(100'000).value();
      tier.wait(tier.write(extent, data.data(), 100'000));
      progress();
      tier.wait(tier.read(extent, back.data(), 100'000));
      progress();
      if (i % 2 == 0) tier.release(extent);
    }
  }
};

TEST_P(DiskTierProcess, LeavesNoFileWhenItIsKilled) {
  constexpr int kDeaths = 25;
  constexpr int kLongest_us = 1000;  // enough for some transfers
  std::minstd_rand random(1);
  for (int death = 0; death < kDeaths; ++death) {
    std::array<int, 2> ends{};
    ASSERT_EQ(pipe(ends.data()), 0);
    const pid_t child = fork();
    ASSERT_GE(child, 0);
    if (child == 0) {
      constexpr int kWithoutEnd = 1'000'000;
      work(kWithoutEnd, [&] {
        const char byte = 0;
        if (write(ends[1], &byte, 1) != 1) _exit(1);
      });
      _exit(1);
    }
    close(ends[1]);
    char byte = 0;
    for (int i = 0; i < death; ++i) EXPECT_EQ(read(ends[0], &byte, 1), 1);
    std::this_thread::sleep_for(std::chrono::microseconds(random() % kLongest_us));
    kill(child, SIGKILL);
    int status = 0;
    waitpid(child, &status, 0);
    close(ends[0]);
    EXPECT_TRUE(WIFSIGNALED(status));
    EXPECT_TRUE(folder_.files().empty());
  }
}

TEST_P(DiskTierProcess, ReleasesFilesAndThreads) {
  // From the first thread on, a sanitizer has a thread of its own. A thread that has ended is listed a little
  // longer.
  pid_t first = 0;
  std::thread([&] { first = gettid(); }).join();
  while (std::filesystem::exists("/proc/self/task/" + std::to_string(first))) std::this_thread::yield();
  const std::ptrdiff_t threads = entries_of("/proc/self/task");
  work(1, [] {});
  const std::ptrdiff_t files = entries_of("/proc/self/fd");
  for (int i = 0; i < 10; ++i) work(4, [] {});
  EXPECT_EQ(entries_of("/proc/self/fd"), files);
  // The kernel's own threads of a ring are listed a little longer, too.
  while (entries_of("/proc/self/task") > threads) std::this_thread::yield();  // the test hangs if they stay
}

INSTANTIATE_TEST_SUITE_P(, DiskTierProcess, every_disk_tier(testing::Values(false)), name_of_disk_tier);

/// Makes io_uring_setup(2) fail with `error` from now on, as containers do.
void block_io_uring(unsigned error) {
  std::array<sock_filter, 4> code = {
      sock_filter(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr))),
      sock_filter(BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, __NR_io_uring_setup, 0, 1)),
      sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | error)),
      sock_filter(BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)),
  };
  const sock_fprog program{code.size(), code.data()};
  if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
      prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0)
    _exit(2);
}

/// Exits with 7 if a tier falls back from io_uring and reports that the reason is `why`.
[[noreturn]] void do_without_io_uring(unsigned error, const std::string& why) {
  block_io_uring(error);
  const DiskTierFacts facts = DiskTier(testing::TempDir()).facts();
  const bool falls_back =
      facts.backend == DiskBackend::kThreads && facts.why_threads.find(why) != std::string::npos;
  DiskTierOptions options;
  options.backend = DiskBackend::kIoUring;
  try {
    const DiskTier tier(testing::TempDir(), options);
  } catch (const Error& refusal) {
    const bool says_why = std::string(refusal.what()).find(why) != std::string::npos;
    _exit(falls_back && says_why && refusal.kind() == ErrorKind::kEnvironment ? 7 : 1);
  }
  _exit(1);
}

TEST(DiskTierLimits, FallsBackFromIoUringIfItIsBlocked) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");  // in a fresh process
  if (!has_io_uring_queue()) GTEST_SKIP() << "this build has no io_uring";
  if (const std::string why = why_kernel_has_no_io_uring(); !why.empty()) GTEST_SKIP() << why;
  EXPECT_EXIT(do_without_io_uring(EPERM, "blocked here"), testing::ExitedWithCode(7), "");
  EXPECT_EXIT(do_without_io_uring(ENOSYS, "the kernel has no io_uring"), testing::ExitedWithCode(7), "");
}

/// Creates a tier with room for the stacks of some of its threads only.
[[noreturn]] void run_out_of_threads() {
  long pages = 0;
  std::ifstream("/proc/self/statm") >> pages;
  constexpr rlim_t kRoom = 100 * kMiB;
  const rlim_t most = static_cast<rlim_t>(pages * sysconf(_SC_PAGESIZE)) + kRoom;
  const rlimit limit{most, most};
  setrlimit(RLIMIT_AS, &limit);
  DiskTierOptions options;
  options.backend = DiskBackend::kThreads;
  options.queue_depth = 512;
  try {
    const DiskTier tier(testing::TempDir(), options);
  } catch (const Error& error) {
    _exit(error.kind() == ErrorKind::kEnvironment ? 7 : 1);
  }
  _exit(1);
}

TEST(DiskTierLimits, ReportsThatTheMachineHasNoThreadsLeft) {
#if defined(__SANITIZE_THREAD__) || defined(__SANITIZE_ADDRESS__)
  GTEST_SKIP() << "the sanitizer itself ends where it gets no memory for a thread";
#endif
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_EXIT(run_out_of_threads(), testing::ExitedWithCode(7), "");
}

}  // namespace
}  // namespace offprof
