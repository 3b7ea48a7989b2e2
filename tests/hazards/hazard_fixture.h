#pragma once

#include <gmock/gmock.h>

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/autograd_engine.h"
#include "engine/graph_cases.h"
#include "engine/offload_step.h"
#include "tests/conformance/devices_under_test.h"
#include "tests/hazards/counting_device.h"
#include "tests/hazards/leftovers.h"
#include "traces/policy.h"

namespace offprof {

/// A test on one of devices_under_test.
class HazardTest : public testing::Test {
 protected:
  using Run = std::function<void(Graph&)>;
  static constexpr std::uint64_t kSeed = 7;

  /// Skips the test where the device is a GPU that is not there.
  void open(const std::string& device);
  void TearDown() override;

  bool has_values() const { return !device_->is_virtual(); }
  Leftovers leftovers() const { return leftovers_of(*device_); }
  /// As left_since of the device.
  std::string left_since(const Leftovers& before) const { return offprof::left_since(before, *device_); }

  /// Of the two leaves, of the same numbers each time; nullopt: plain autograd's.
  std::vector<at::Tensor> gradients(const Run& run, const std::optional<Policy>& policy);
  /// Runs `work` as a step under `policy`.
  std::shared_ptr<OffloadStep> run_step(const Policy& policy, const std::function<void()>& work,
                                        const Residents& residents = {});
  /// Expects what plain autograd gives, to the bit; of a device without values that both have a gradient.
  void expect_equal(const std::vector<at::Tensor>& actual, const std::vector<at::Tensor>& expected) const;
  /// Does it twice, since the first time may start threads for good, and expects nothing to be left.
  void expect_nothing_left(const std::function<void()>& work);

  CountingDevice& device() { return *device_; }
  /// From here on steps run on such a device around the one that was opened.
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

/// What `work` throws, without LibTorch's backtrace; empty where it throws nothing.
std::string message_of(const std::function<void()>& work);

/// One of every kind that decides otherwise.
std::vector<Policy> hazard_policies();

}  // namespace offprof
