#pragma once

#include <ATen/ATen.h>
#include <gtest/gtest.h>

#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/autograd/autograd_engine.h"
#include "engine/autograd/offload_step.h"
#include "engine/devices/device.h"
#include "engine/devices/host/counted_allocator.h"
#include "engine/devices/host/host_device.h"
#include "traces/model/policy.h"

namespace offprof {

/// Installs our allocator and our autograd engine on its first call, which is made before the first test:
/// they must be in place before any tensor is made and any backward runs.
inline CountedAllocator& torch_allocator() {
  static CountedAllocator& allocator = [&]() -> CountedAllocator& {
    CountedAllocator& counted = CountedAllocator::install();
    install_autograd_engine();
    return counted;
  }();
  return allocator;
}

/// Prepares LibTorch before the first test, whichever it is.
class TorchEnvironment final : public testing::Environment {
 public:
  void SetUp() override { torch_allocator(); }
};
inline const testing::Environment* const torch_environment =
    testing::AddGlobalTestEnvironment(new TorchEnvironment);

/// Returns a preset policy with the given threshold, stash and prefetch.
inline Policy test_policy(const std::string& name, std::optional<Bytes> threshold,
                          std::optional<std::int64_t> stash, Bytes prefetch = 0) {
  Policy policy = preset_policy(name);
  policy.threshold_bytes = threshold;
  policy.stash_count = stash;
  policy.prefetch_bytes = prefetch;
  return policy;
}

/// Compares bit by bit. A tensor that only one side has is a difference too.
inline bool bitwise_equal(const at::Tensor& a, const at::Tensor& b) {
  if (!a.defined() || !b.defined()) return a.defined() == b.defined();
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor x = a.resolve_conj().resolve_neg().contiguous(),
                   y = b.resolve_conj().resolve_neg().contiguous();
  return x.nbytes() == 0 || std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// Sizes of allocations (positive) and frees (negative), in order.
class MemoryLog final : public AllocationListener {
 public:
  explicit MemoryLog(Device& device) : device_(device) { device_.set_listener(this); }
  ~MemoryLog() override { device_.set_listener(nullptr); }
  MemoryLog(const MemoryLog&) = delete;
  MemoryLog& operator=(const MemoryLog&) = delete;
  void on_alloc(AllocationId, Bytes bytes, std::int32_t) override { changes.push_back(bytes); }
  void on_free(AllocationId, Bytes bytes, std::int32_t) override { changes.push_back(-bytes); }

  std::vector<Bytes> changes;

 private:
  Device& device_;
};

/// A test fixture with a device, and steps on it.
class TorchTest : public testing::Test {
 protected:
  static constexpr std::uint64_t kSeed = 7;

  TorchTest() { at::manual_seed(kSeed); }

  /// Returns a leaf tensor that requires a gradient.
  static at::Tensor leaf(at::IntArrayRef sizes, at::ScalarType type = at::kDouble) {
    return at::randn(sizes, at::TensorOptions(type)).set_requires_grad(true);
  }

  std::shared_ptr<OffloadStep> make_step(const Policy& policy, StepListener* listener = nullptr) {
    return std::make_shared<OffloadStep>(device_, policy, std::vector<SavedId>{}, residents_, listener);
  }

  /// Runs `work` as a step under `policy`, backward included, and returns the step.
  std::shared_ptr<OffloadStep> run_step(const Policy& policy, const std::function<void()>& work) {
    auto step = make_step(policy);
    const CurrentStep current(step);
    work();
    step->backward_end();
    return step;
  }

  Bytes live_bytes() const { return device_.live_bytes(); }

  HostDevice device_{torch_allocator(), Link{}};
  std::shared_ptr<const Residents> residents_ = std::make_shared<const Residents>();
};

/// Returns the message that `work` throws, without LibTorch's backtrace; empty if it throws nothing.
template <typename Exception>
std::string message_of(const std::function<void()>& work) {
  try {
    work();
  } catch (const Exception& error) {
    const std::string what = error.what();
    return what.substr(0, what.find("\nException raised from"));
  }
  return {};
}

}  // namespace offprof
