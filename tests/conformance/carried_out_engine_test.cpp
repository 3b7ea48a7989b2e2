// The engine over a GPU whose streams get on with their work in any order that events allow.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <map>

#include "simulator/virtual_gpu/stand_in.h"
#include "tests/conformance/carried_out_gpu.h"
#include "tests/conformance/device_wrapper.h"
#include "tests/conformance/devices_under_test.h"
#include "tests/conformance/pattern_step.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kSchedules = 2000;

/// What came of many schedules.
struct Outcome {
  int different = 0;                 ///< steps that something came back wrong in
  int hazardous = 0;                 ///< steps that the stream-order check objected to
  std::vector<std::string> hazards;  ///< each kind of line once
};

template <typename MakeDevice>
Outcome run_schedules(std::uint64_t count, const MakeDevice& around) {
  Outcome outcome;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const std::unique_ptr<Device> device = open_carried_out_gpu(seed);
    const Bytes before = device->live_bytes();
    {
      const auto wrapped = around(*device);
      outcome.different += PatternStep(*wrapped, seed).run() != 0;
    }
    EXPECT_EQ(device->live_bytes(), before) << "seed " << seed;
    device->release_cache();
    const std::vector<std::string> hazards = hazards_seen();
    outcome.hazardous += !hazards.empty();
    outcome.hazards.insert(outcome.hazards.end(), hazards.begin(), hazards.end());
  }
  return outcome;
}

TEST(CarriedOutEngine, PatternsComeBackBitwiseUnderThousandsOfSchedules) {
  const Outcome outcome =
      run_schedules(kSchedules, [](Device& device) { return std::make_unique<DeviceWrapper>(device); });
  EXPECT_EQ(outcome.different, 0);
  EXPECT_THAT(outcome.hazards, IsEmpty());
}

// --- Planted: what the engine relies on, left out ---

constexpr std::uint64_t kPlantedSchedules = 100;

/// The compute stream never waits for one direction's copies.
class NeverWaits final : public DeviceWrapper {
 public:
  NeverWaits(Device& inner, CopyQueue queue) : DeviceWrapper(inner), queue_(queue) {}
  void wait(CopyQueue queue, Event event) override {
    if (queue != queue_) DeviceWrapper::wait(queue, event);
  }

 private:
  CopyQueue queue_;
};

TEST(CarriedOutEngine, AMissingWaitForACopyOutIsCaughtAndBreaksPatterns) {
  const Outcome outcome = run_schedules(kPlantedSchedules, [](Device& device) {
    return std::make_unique<NeverWaits>(device, CopyQueue::kD2h);
  });
  EXPECT_GT(outcome.different, 0);
  EXPECT_GE(outcome.hazardous, outcome.different);
  EXPECT_THAT(outcome.hazards, Contains(HasSubstr("a block is given back while a copy may still touch it")));
}

TEST(CarriedOutEngine, AMissingWaitForACopyInIsCaughtAndBreaksPatterns) {
  const Outcome outcome = run_schedules(kPlantedSchedules, [](Device& device) {
    return std::make_unique<NeverWaits>(device, CopyQueue::kH2d);
  });
  EXPECT_GT(outcome.different, 0);
  EXPECT_GE(outcome.hazardous, outcome.different);
  EXPECT_THAT(outcome.hazards, Contains(HasSubstr("two copies of the same memory are not ordered")));
}

/// Copies on a stream of its own that does not wait for the compute stream.
class CopiesAtOnce final : public DeviceWrapper {
 public:
  explicit CopiesAtOnce(Device& inner) : DeviceWrapper(inner) {
    cudaStreamCreateWithFlags(&stream_, cudaStreamNonBlocking);
  }
  ~CopiesAtOnce() override {
    cudaDeviceSynchronize();
    for (const auto& [event, recorded] : events_) cudaEventDestroy(recorded);
    cudaStreamDestroy(stream_);
  }
  Event copy(CopyQueue, const CopyRequest& request) override {
    cudaMemcpyAsync(request.to, request.from, static_cast<std::size_t>(request.bytes), cudaMemcpyDefault,
                    stream_);
    cudaEvent_t& event = events_[events_.size() + 1];
    cudaEventCreateWithFlags(&event, cudaEventDisableTiming);
    cudaEventRecord(event, stream_);
    return events_.size();
  }
  void wait(CopyQueue, Event event) override { cudaStreamWaitEvent(nullptr, events_.at(event), 0); }

 private:
  cudaStream_t stream_ = nullptr;
  std::map<Event, cudaEvent_t> events_;
};

TEST(CarriedOutEngine, ACopyThatDoesNotWaitForTheComputeStreamIsCaughtAndBreaksPatterns) {
  const Outcome outcome =
      run_schedules(kPlantedSchedules, [](Device& device) { return std::make_unique<CopiesAtOnce>(device); });
  EXPECT_GT(outcome.different, 0);
  EXPECT_GE(outcome.hazardous, outcome.different);
  EXPECT_THAT(outcome.hazards, Contains(HasSubstr("two copies of the same memory are not ordered")));
}

}  // namespace
}  // namespace offprof
