#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/autograd/autograd_engine.h"
#include "engine/autograd/offload_step.h"
#include "tests/conformance/devices_under_test.h"
#include "tests/hazards/counting_device.h"
#include "tests/hazards/leftovers.h"
#include "tests/support/graph_cases.h"
#include "traces/model/policy.h"

namespace offprof {

/// Base of tests that run on one of devices_under_test.
class HazardTest : public testing::Test {
 protected:
  using Run = std::function<void(Graph&)>;
  static constexpr std::uint64_t kSeed = 7;

  /// Opens the device. Skips the test if the device is a GPU that is not present.
  void open(const std::string& device);
  void TearDown() override;

  bool has_values() const { return !device_->is_virtual(); }
  Leftovers leftovers() const { return leftovers_of(*device_); }
  /// Calls left_since for the device.
  std::string left_since(const Leftovers& before) const { return offprof::left_since(before, *device_); }

  /// Returns the gradients of the two leaves, which have the same values each time. nullopt: plain autograd.
  std::vector<at::Tensor> gradients(const Run& run, const std::optional<Policy>& policy);
  /// Runs `work` as a step under `policy`.
  std::shared_ptr<OffloadStep> run_step(const Policy& policy, const std::function<void()>& work,
                                        const Residents& residents = {});
  /// Expects the gradients of plain autograd, bit for bit. On a device without values, expects that the same
  /// leaves have a gradient.
  void expect_equal(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected) const;
  /// Runs `work` twice, since the first run may start permanent threads, and expects that nothing is left.
  void expect_nothing_left(const std::function<void()>& work);

  /// Returns those of hazard_policies that are run here: on the host the ones at even places, on other
  /// devices the ones at odd places, so that together they run all. With OFFPROF_TEST_EXTENT=full, all.
  std::vector<Policy> policies_here() const;

  CountingDevice& device() { return *device_; }
  /// Wraps the opened device; later steps run on the wrapper.
  template <typename Wrapper>
  Wrapper& wrap() {
    auto wrapper = std::make_unique<Wrapper>(*opened_);
    Wrapper& result = *wrapper;
    device_ = std::move(wrapper);
    return result;
  }

 private:
  std::unique_ptr<Device> opened_;
  std::unique_ptr<CountingDevice> device_;
};

/// Returns the message of the exception from `work`, without LibTorch's backtrace; empty if it throws
/// nothing.
std::string message_of(const std::function<void()>& work);

/// Returns one policy for each kind of decision.
std::vector<Policy> hazard_policies();

}  // namespace offprof
