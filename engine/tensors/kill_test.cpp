// Tests of the files on the disk after a process is killed at any moment of an update.
#include <ATen/ATen.h>
#include <gmock/gmock.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <chrono>
#include <csignal>
#include <random>
#include <thread>

#include "engine/tensors/offloaded_tensor.h"
#include "tests/support/folder_test.h"
#include "tests/support/torch_test.h"
#include "traces/base/temporary.h"

namespace offprof {
namespace {

class KillTest : public FolderTest {
 protected:
  /// Too few for LibTorch to start threads, which a fork does not copy.
  static constexpr std::int64_t kNumbers = 30'000;

  /// Starts a process that updates a value repeatedly. It has started when this returns.
  pid_t start_updates() const {
    std::array<int, 2> begun{};
    EXPECT_EQ(::pipe(begun.data()), 0);
    const pid_t updater = ::fork();
    if (updater == 0) update_forever(begun[1]);
    ::close(begun[1]);
    char byte = 0;
    EXPECT_EQ(::read(begun[0], &byte, 1), 1);
    ::close(begun[0]);
    return updater;
  }

  /// Stops the updater in the middle of an update, which a temporary file indicates. Retries until there is
  /// one.
  void stop_within_an_update(pid_t updater) const {
    constexpr int kMostMoments = 100'000;
    for (int moment = 0; moment < kMostMoments; ++moment) {
      ASSERT_EQ(::kill(updater, SIGSTOP), 0);
      int status = 0;
      ASSERT_EQ(::waitpid(updater, &status, WUNTRACED), updater);
      ASSERT_TRUE(WIFSTOPPED(status));
      if (count_temporaries() > 0) return;
      ASSERT_EQ(::kill(updater, SIGCONT), 0);
    }
    FAIL() << "no update was under way at any of " << kMostMoments << " moments";
  }

  static void kill(pid_t updater) {
    ASSERT_EQ(::kill(updater, SIGKILL), 0);
    int status = 0;
    ASSERT_EQ(::waitpid(updater, &status, 0), updater);
    ASSERT_TRUE(WIFSIGNALED(status));
  }

  /// Expects that a process started now finds a complete value, and that no temporary file is left.
  void expect_whole_value() const {
    const auto folder = OffloadFolder::open(path_);
    EXPECT_EQ(count_temporaries(), 0);
    ASSERT_THAT(folder->names(), ::testing::ElementsAre("w"));
    const at::Tensor value = OffloadedTensor::open("w", folder).load();
    ASSERT_EQ(value.numel(), kNumbers);
    ASSERT_TRUE(value.eq(value[0]).all().item<bool>());
  }

  std::ptrdiff_t count_temporaries() const {
    return std::count_if(std::filesystem::directory_iterator(path_), std::filesystem::directory_iterator(),
                         [](const auto& entry) { return is_temporary(entry.path()); });
  }

 private:
  [[noreturn]] void update_forever(int begun) const {
    std::signal(SIGPIPE, SIG_IGN);
    try {
      OffloadedTensor kept(at::zeros({kNumbers}), "w", OffloadFolder::open(path_));
      if (::write(begun, "x", 1) != 1) ::_exit(1);
      for (int round = 1;; ++round) kept.update_values(at::full({kNumbers}, static_cast<float>(round)));
    } catch (const std::exception&) {
      ::_exit(2);
    }
  }
};

TEST_F(KillTest, AtAnyMomentLeavesACompleteValueAndTheNextStartCleansUp) {
  torch_allocator();
  constexpr int kMoments = 100;
  constexpr int kLongest_us = 3000;  // the time of a few updates
  std::minstd_rand random(1);
  for (int moment = 0; moment < kMoments; ++moment) {
    SCOPED_TRACE("moment " + std::to_string(moment));
    const pid_t updater = start_updates();
    std::this_thread::sleep_for(std::chrono::microseconds(random() % kLongest_us));
    ASSERT_NO_FATAL_FAILURE(kill(updater));
    ASSERT_NO_FATAL_FAILURE(expect_whole_value());
  }
}

TEST_F(KillTest, DuringAnUpdateLeavesACompleteValueAndTheNextStartCleansUp) {
  torch_allocator();
  constexpr int kUpdates = 20;
  for (int update = 0; update < kUpdates; ++update) {
    SCOPED_TRACE("update " + std::to_string(update));
    const pid_t updater = start_updates();
    ASSERT_NO_FATAL_FAILURE(stop_within_an_update(updater));
    ASSERT_NO_FATAL_FAILURE(kill(updater));
    EXPECT_GT(count_temporaries(), 0);
    ASSERT_NO_FATAL_FAILURE(expect_whole_value());
  }
}

}  // namespace
}  // namespace offprof
