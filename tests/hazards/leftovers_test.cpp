// Tests of the check for what steps leave behind.
#include <fcntl.h>
#include <unistd.h>

#include <future>
#include <thread>

#include "tests/hazards/hazard_fixture.h"

namespace offprof {
namespace {

using testing::HasSubstr;

class LeftoversTest : public HazardTest, public testing::WithParamInterface<std::string> {
 protected:
  void SetUp() override { open(GetParam()); }
};

TEST_P(LeftoversTest, MemoryInUseIsLeft) {
  const Leftovers before = leftovers();
  const at::Tensor held = at::ones({16}, at::TensorOptions(device().torch_device()));
  EXPECT_THAT(left_since(before), HasSubstr("bytes on the device"));
}

TEST_P(LeftoversTest, AThreadThatEndsInTimeIsNotLeft) {
  const Leftovers before = leftovers();
  std::promise<void> end;
  std::thread thread([&] { end.get_future().wait(); });
  const std::set<pid_t> added = leftovers().threads;
  EXPECT_GT(added.size(), before.threads.size());
  end.set_value();
  EXPECT_EQ(left_since(before), "");
  thread.join();
}

/// The thread stands for one that was just ending at the first check.
TEST_P(LeftoversTest, AThreadThatHasEndedIsNotLeft) {
  std::promise<void> end;
  std::thread thread([&] { end.get_future().wait(); });
  const Leftovers before = leftovers();
  end.set_value();
  thread.join();
  EXPECT_EQ(left_since(before), "");
}

TEST_P(LeftoversTest, AThreadThatReplacesAnEndedOneIsLeft) {
  std::promise<void> end_first, end_second;
  std::thread first([&] { end_first.get_future().wait(); });
  const Leftovers before = leftovers();
  end_first.set_value();
  first.join();
  std::thread second([&] { end_second.get_future().wait(); });
  EXPECT_THAT(offprof::left_since(before, device(), std::chrono::milliseconds(0)),
              HasSubstr("1 threads more"));
  end_second.set_value();
  second.join();
}

TEST_P(LeftoversTest, AnOpenFileIsLeft) {
  const Leftovers before = leftovers();
  const int file = ::open("/dev/null", O_RDONLY | O_CLOEXEC);
  EXPECT_THAT(offprof::left_since(before, device(), std::chrono::milliseconds(0)), HasSubstr("open files"));
  ::close(file);
}

INSTANTIATE_TEST_SUITE_P(, LeftoversTest, testing::ValuesIn(devices_under_test()),
                         [](const auto& test) { return test.param; });

}  // namespace
}  // namespace offprof
