#pragma once

#include <gmock/gmock.h>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "tests/hazards/failing_device.h"
#include "tests/hazards/hazard_fixture.h"

namespace offprof {

/// Runs steps on a device on which the n-th call fails, for every n.
class FaultFixture : public HazardTest {
 protected:
  /// Returns gradients, or throws.
  using Step = std::function<std::vector<at::Tensor>()>;
  /// Gets the message of the exception from a step with a failed call; empty if the step threw nothing.
  using Judge = std::function<void(const std::string& message)>;

  /// Skips the test in the same cases as HazardTest::open.
  template <typename Wrapper>
  void open_faulty(const std::string& device) {
    open(device);
    if (!IsSkipped()) faulty_ = &wrap<Wrapper>();
  }

  /// Fails the first call, then the second, and so on to the 40th, then every third, and passes each outcome
  /// to `judge`. In every case a step that returns must return `expected`, and must leave the same as a step
  /// without failures. Long steps repeat the same calls.
  void for_every_call(const Step& step, const std::vector<at::Tensor>& expected, bool and_all_after_it,
                      const Judge& judge) {
    expect_equal(step(), expected);
    const Leftovers before = leftovers();
    constexpr int kAllOf = 40;
    int call = 0;
    bool has_failed = false;
    std::string message;
    do {
      call += call < kAllOf ? 1 : 3;
      SCOPED_TRACE("call " + std::to_string(call));
      faulty_->fail_at(call, and_all_after_it);
      std::vector<at::Tensor> actual;
      message = message_of([&] { actual = step(); });
      has_failed = faulty_->has_failed();
      faulty_->fail_at(0);
      if (message.empty()) expect_equal(actual, expected);
      actual.clear();
      if (has_failed) judge(message);
      failed_ += has_failed ? 1 : 0;
      ASSERT_EQ(left_since(before), "");
    } while (has_failed);
    EXPECT_THAT(message, testing::IsEmpty());
    expect_equal(step(), expected);
  }

  /// Runs `step` once, then `runs` times with one failing call (at most once per call). The failing calls are
  /// spread evenly over the calls of the first run. Passes each outcome to `judge`. Every run must leave the
  /// same as the first.
  void for_some_calls(int runs, const std::function<void()>& step, bool and_all_after_it,
                      const Judge& judge) {
    faulty_->count_calls();
    step();
    const int calls = faulty_->calls();
    runs = std::min(runs, calls);
    const Leftovers before = leftovers();
    for (int i = 0; i < runs; ++i) {
      const int call = 1 + static_cast<int>(static_cast<std::int64_t>(calls - 1) * i / std::max(runs - 1, 1));
      SCOPED_TRACE("call " + std::to_string(call) + " of " + std::to_string(calls));
      faulty_->fail_at(call, and_all_after_it);
      const std::string message = message_of(step);
      const bool has_failed = faulty_->has_failed();  // the last call of one run may be missing in the next
      faulty_->fail_at(0);
      if (has_failed) judge(message);
      failed_ += has_failed ? 1 : 0;
      ASSERT_EQ(left_since(before), "");
    }
  }

  /// Returns the number of calls that have failed so far.
  int failed() const { return failed_; }
  FaultyDevice& faulty() { return *faulty_; }

 private:
  FaultyDevice* faulty_ = nullptr;
  int failed_ = 0;
};

/// Expects no failure, or the device's planted failure.
inline void expect_planted_failure(const std::string& message) {
  if (!message.empty()) {
    EXPECT_THAT(message, testing::HasSubstr(kPlantedFailure));
  }
}

}  // namespace offprof
