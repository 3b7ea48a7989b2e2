// Tests of the engine on a GPU whose streams run their work in any order that events allow.
#include <cuda_runtime_api.h>
#include <gmock/gmock.h>

#include <functional>
#include <map>

#include "engine/devices/virtual_gpu/stand_in.h"
#include "engine/storage/block_codec.h"
#include "tests/conformance/device_wrapper.h"
#include "tests/conformance/devices_under_test.h"
#include "tests/conformance/disk_wrapper.h"
#include "tests/conformance/functional_mode_gpu.h"
#include "tests/conformance/pattern_step.h"
#include "tests/support/test_folder.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using testing::Contains;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::uint64_t kSchedules = 2000;
constexpr std::uint64_t kDiskSchedules = 300;

/// Sums over many schedules.
struct Outcome {
  int different = 0;                 ///< steps in which a tensor came back wrong
  int hazardous = 0;                 ///< steps in which the stream race checker found a race
  std::vector<std::string> hazards;  ///< each kind of message once
  Bytes read_from_disk = 0;
};

using Prepare = std::function<void(Device&)>;

template <typename MakeDevice>
Outcome run_schedules(std::uint64_t count, const MakeDevice& around, const Prepare& prepare = {}) {
  Outcome outcome;
  for (std::uint64_t seed = 0; seed < count; ++seed) {
    const std::unique_ptr<Device> device = open_functional_mode_gpu(seed);
    if (prepare) prepare(*device);
    const Bytes before = device->live_bytes();
    {
      const auto wrapped = around(*device);
      PatternStep step(*wrapped, seed);
      outcome.different += step.run() != 0;
      outcome.read_from_disk += step.bytes_read_from_disk();
    }
    EXPECT_EQ(device->live_bytes(), before) << "seed " << seed;
    device->release_cache();
    const std::vector<std::string> hazards = hazards_seen();
    outcome.hazardous += !hazards.empty();
    outcome.hazards.insert(outcome.hazards.end(), hazards.begin(), hazards.end());
  }
  return outcome;
}

TEST(FunctionalModeEngine, PatternsComeBackBitwiseUnderThousandsOfSchedules) {
  const Outcome outcome =
      run_schedules(kSchedules, [](Device& device) { return std::make_unique<DeviceWrapper>(device); });
  EXPECT_EQ(outcome.different, 0);
  EXPECT_THAT(outcome.hazards, IsEmpty());
}

/// Expects the patterns back through a real disk, or compressed memory in its place; the streams are virtual.
void expect_back_from(const DiskRequest& request) {
  const Outcome outcome = run_schedules(
      kDiskSchedules, [](Device& device) { return std::make_unique<DeviceWrapper>(device); },
      [&](Device& device) { device.open_disk(request); });
  EXPECT_EQ(outcome.different, 0);
  EXPECT_THAT(outcome.hazards, IsEmpty());
  EXPECT_GT(outcome.read_from_disk, 0);
}

TEST(FunctionalModeEngine, PatternsComeBackBitwiseFromTheDisk) {
  const TestFolder folder;
  expect_back_from({.folder = folder.path(), .checksums = true});
}

TEST(FunctionalModeEngine, PatternsComeBackBitwiseFromCompressedMemory) {
  if (!has_block_codec()) GTEST_SKIP() << "this build has no codec";
  expect_back_from({.folder = {}, .compressed = true});
}

TEST(FunctionalModeEngine, RecordsDiskTransfersOnTheDevicesClock) {
  const std::unique_ptr<Device> device = open_functional_mode_gpu(1);
  const TestFolder folder;
  device->open_disk({.folder = folder.path()});
  EXPECT_EQ(PatternStep(*device, 1).run(), 0);
  const std::vector<DiskRecord> records = device->disk()->take_records();
  ASSERT_FALSE(records.empty());
  for (const DiskRecord& record : records) {
    EXPECT_LE(record.begin_ns, record.end_ns);
    EXPECT_LT(record.end_ns, Nanoseconds{60'000'000'000});  // the clock did not start with the machine
  }
}

/// Disk whose reads fail only when they are waited for.
class FailsLate final : public DiskWrapper {
 public:
  using DiskWrapper::DiskWrapper;
  Transfer read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) override {
    return read_ = DiskWrapper::read(extent, to, bytes, tag);
  }
  void wait(const Transfer& transfer) override {
    DiskWrapper::wait(transfer);
    if (transfer == read_) throw environment_error("the last read has failed");
  }
  bool check(const Transfer&) override { return false; }

 private:
  Transfer read_;
};

class WithFailingDisk final : public DeviceWrapper {
 public:
  explicit WithFailingDisk(Device& inner) : DeviceWrapper(inner), disk_(*inner.disk()) {}
  DeviceDisk* disk() override { return &disk_; }

 private:
  FailsLate disk_;
};

TEST(FunctionalModeEngine, AReadThatFailsLateIsAnErrorOfTheStep) {
  const std::unique_ptr<Device> device = open_functional_mode_gpu(1);
  const TestFolder folder;
  device->open_disk({.folder = folder.path()});
  WithFailingDisk failing(*device);
  EXPECT_THROW(PatternStep(failing, 1).run(), Error);
}

// --- Mutations: the engine without something that it relies on ---

constexpr std::uint64_t kPlantedSchedules = 100;

/// Device whose compute stream never waits for the copies of one direction.
class NeverWaits final : public DeviceWrapper {
 public:
  NeverWaits(Device& inner, CopyQueue queue) : DeviceWrapper(inner), queue_(queue) {}
  void wait(CopyQueue queue, Event event) override {
    if (queue != queue_) DeviceWrapper::wait(queue, event);
  }

 private:
  CopyQueue queue_;
};

TEST(FunctionalModeEngine, DetectsAMissingWaitForACopyOut) {
  const Outcome outcome = run_schedules(kPlantedSchedules, [](Device& device) {
    return std::make_unique<NeverWaits>(device, CopyQueue::kD2h);
  });
  EXPECT_GT(outcome.different, 0);
  EXPECT_GE(outcome.hazardous, outcome.different);
  EXPECT_THAT(outcome.hazards, Contains(HasSubstr("a block is freed while a copy may still access it")));
}

TEST(FunctionalModeEngine, DetectsAMissingWaitForACopyIn) {
  const Outcome outcome = run_schedules(kPlantedSchedules, [](Device& device) {
    return std::make_unique<NeverWaits>(device, CopyQueue::kH2d);
  });
  EXPECT_GT(outcome.different, 0);
  EXPECT_GE(outcome.hazardous, outcome.different);
  EXPECT_THAT(outcome.hazards, Contains(HasSubstr("two copies of the same memory are not ordered")));
}

/// Device that copies on its own stream, which does not wait for the compute stream.
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

TEST(FunctionalModeEngine, DetectsACopyThatDoesNotWaitForTheComputeStream) {
  const Outcome outcome =
      run_schedules(kPlantedSchedules, [](Device& device) { return std::make_unique<CopiesAtOnce>(device); });
  EXPECT_GT(outcome.different, 0);
  EXPECT_GE(outcome.hazardous, outcome.different);
  EXPECT_THAT(outcome.hazards, Contains(HasSubstr("two copies of the same memory are not ordered")));
}

}  // namespace
}  // namespace offprof
