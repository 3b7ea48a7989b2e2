// Tests of memory that is freed while other streams still use it, on a virtual GPU.
#include <ATen/ATen.h>
#include <c10/core/StreamGuard.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <gmock/gmock.h>

#include <string>
#include <utility>
#include <vector>

#include "engine/devices/factory/device_factory.h"
#include "engine/devices/virtual_gpu/stand_in.h"
#include "traces/base/units.h"

namespace offprof {
namespace {

using testing::ElementsAre;

class Listener final : public AllocationListener {
 public:
  void on_alloc(AllocationId, Bytes, std::int32_t) override { calls.push_back("alloc"); }
  void on_free_requested(AllocationId, std::span<const std::int32_t> points) override {
    calls.push_back("request with " + std::to_string(points.size()) + " points");
  }
  void on_free(AllocationId, Bytes, std::int32_t) override { calls.push_back("free"); }

  std::vector<std::string> calls;
};

class DeferredFrees : public testing::Test {
 protected:
  void SetUp() override {
    VirtualGpuOptions options;
    options.profile = load_profile("h200");
    offprof_virtual_gpu()->configure(std::move(options));
    device_ = make_device("virtual:h200", Link{});
    device_->note_stream_commands(true);
  }
  void TearDown() override { device_->set_listener(nullptr); }

  at::Tensor tensor() {
    return at::empty({64 * kMiB}, at::TensorOptions(device_->torch_device()).dtype(at::kByte));
  }
  /// Frees a tensor that another stream fills. Returns what the listener is told until the next allocation.
  std::vector<std::string> calls_of_free(bool waits) {
    const c10::Stream other =
        c10::impl::VirtualGuardImpl(c10::kCUDA).getStreamFromGlobalPool(device_->torch_device());
    at::Tensor used = tensor();
    {
      const c10::StreamGuard on_other(other);
      used.zero_();
    }
    used.record_stream(other);
    Listener listener;
    device_->set_listener(&listener);
    used.reset();
    if (waits) device_->synchronize();
    const at::Tensor next = tensor();
    device_->set_listener(nullptr);
    return listener.calls;
  }

  std::unique_ptr<Device> device_;
};

TEST_F(DeferredFrees, AreToldWithTheirPointsWhileTheStreamRuns) {
  EXPECT_THAT(calls_of_free(false), ElementsAre("request with 1 points", "alloc"));
}

/// In another step the stream may take longer, so the points are needed for that.
TEST_F(DeferredFrees, AreToldWithTheirPointsIfTheStreamHasEndedByThen) {
  EXPECT_THAT(calls_of_free(true), ElementsAre("request with 1 points", "free", "alloc"));
}

TEST_F(DeferredFrees, OfMemoryOfOneStreamAreFreesAlone) {
  Listener listener;
  at::Tensor used = tensor();
  device_->set_listener(&listener);
  used.reset();
  const at::Tensor next = tensor();
  EXPECT_THAT(listener.calls, ElementsAre("free", "alloc"));
}

}  // namespace
}  // namespace offprof
