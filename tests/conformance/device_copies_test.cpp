// Conformance suite of the devices, part one: copies, time and descriptions, through the interface only.
#include "engine/devices/link_calibration.h"
#include "tests/conformance/device_fixture.h"

namespace offprof {
namespace {

using at::Tensor;
using testing::IsEmpty;

class DeviceCopies : public DeviceTest {};

TEST_P(DeviceCopies, ACopyOutAndInRestoresTheBytes) {
  for (const Bytes bytes : {Bytes{1}, Bytes{513}, kBytes}) {
    const Tensor there = on_device(pattern(bytes, 4)), back = bytes_on_device(bytes);
    const HostBuffer host(*device_, bytes);
    device_->wait(CopyQueue::kD2h, copy_out(there, host.get()));
    device_->wait(CopyQueue::kH2d, copy_in(host.get(), back));
    EXPECT_EQ(read(back), pattern(bytes, 4));
    device_->synchronize();
    EXPECT_EQ(host.values(), pattern(bytes, 4));
  }
}

TEST_P(DeviceCopies, CopiesStridedTensorsDenselyInTheOrderOfTheirStrides) {
  const Tensor matrix = on_device(pattern(48, 5)).view({6, 8});
  const HostBuffer transposed(*device_, 48), sliced(*device_, 18);
  const Bytes before = device_->live_bytes();
  const auto first = device_->copy_out_densely(CopyQueue::kD2h, matrix.t(), transposed.get(), 1);
  device_->wait(CopyQueue::kD2h, first);
  const auto second = device_->copy_out_densely(CopyQueue::kD2h, matrix.slice(1, 1, 8, 3), sliced.get(), 2);
  device_->wait(CopyQueue::kD2h, second);
  const std::vector<CopyRecord> records = device_->take_copy_records();
  EXPECT_EQ(device_->live_bytes(), before);
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].bytes, 18);
  EXPECT_EQ(transposed.values(), pattern(48, 5));
  if (device_->is_virtual()) return;  // a kernel gathers the slice, and a virtual GPU runs no kernels
  const Tensor on_host = matrix.cpu().slice(1, 1, 8, 3).contiguous();
  EXPECT_EQ(sliced.values(), read(on_host.flatten()));
}

TEST_P(DeviceCopies, CopiesOfAQueueRunInOrderAndAreRecordedOnce) {
  const Tensor small = on_device(pattern(100, 6)), large = on_device(pattern(kBytes, 7));
  const HostBuffer host(*device_, kBytes), other(*device_, 100);
  copy_out(large, host.get(), 10);
  copy_out(small, other.get(), 11);
  device_->wait(CopyQueue::kD2h, copy_out(small, host.get(), 12));
  const std::vector<CopyRecord> records = device_->take_copy_records();
  ASSERT_EQ(records.size(), 3U);
  const Bytes bytes[] = {kBytes, 100, 100};
  for (std::size_t i = 0; i < records.size(); ++i) {
    EXPECT_EQ(records[i].tag, 10 + static_cast<std::int64_t>(i));
    EXPECT_EQ(records[i].bytes, bytes[i]);
    EXPECT_EQ(records[i].direction, CopyDirection::kD2h);
    EXPECT_LE(records[i].begin_ns, records[i].end_ns);
    if (i == 0) continue;
    EXPECT_LE(records[i - 1].end_ns, records[i].begin_ns);
  }
  EXPECT_THAT(device_->take_copy_records(), IsEmpty());
  EXPECT_EQ(values_at(host.get(), 100), pattern(100, 6));
  EXPECT_EQ(other.values(), pattern(100, 6));
}

TEST_P(DeviceCopies, ACopySeesEarlierWorkOfTheComputeStream) {
  const Tensor first = on_device(pattern(kBytes, 8)), second = on_device(pattern(kBytes, 9));
  const Tensor there = bytes_on_device();
  const HostBuffer host(*device_, kBytes);
  there.copy_(first);
  there.copy_(second);
  device_->wait(CopyQueue::kD2h, copy_out(there, host.get()));
  device_->synchronize();
  EXPECT_EQ(host.values(), pattern(kBytes, 9));
}

TEST_P(DeviceCopies, TheComputeStreamSeesACopyItWaitedFor) {
  const HostBuffer host(*device_, pattern(kBytes, 10));
  const Tensor there = bytes_on_device(), result = bytes_on_device();
  device_->wait(CopyQueue::kH2d, copy_in(host.get(), there));
  result.copy_(there);
  EXPECT_EQ(read(result), pattern(kBytes, 10));
  device_->synchronize();
}

TEST_P(DeviceCopies, MemoryIsReusableAfterTheWaitForItsCopyOut) {
  const Tensor other = on_device(pattern(kBytes, 12));
  const HostBuffer host(*device_, kBytes);
  {
    const Tensor there = on_device(pattern(kBytes, 11));
    device_->wait(CopyQueue::kD2h, copy_out(there, host.get()));
  }
  const Tensor reuse = bytes_on_device();
  reuse.copy_(other);
  device_->synchronize();
  EXPECT_EQ(host.values(), pattern(kBytes, 11));
}

TEST_P(DeviceCopies, SynchronizeFinishesAllCopies) {
  const Tensor there = on_device(pattern(kBytes, 13));
  const HostBuffer others(*device_, kBytes), last(*device_, kBytes);
  for (int copies = 0; copies < 20; ++copies) copy_out(there, others.get());  // nobody waits for them
  copy_out(there, last.get());
  device_->synchronize();
  EXPECT_EQ(last.values(), pattern(kBytes, 13));
}

TEST_P(DeviceCopies, ACopyInWaitsForEarlierUsesOfItsMemory) {
  const HostBuffer host(*device_, pattern(kBytes, 14));
  const Tensor result = bytes_on_device();
  const Tensor source = on_device(pattern(kBytes, 13));
  {
    const Tensor used = bytes_on_device();
    used.copy_(source);
    result.copy_(used);
  }
  const Tensor reloaded = bytes_on_device();
  device_->wait(CopyQueue::kH2d, copy_in(host.get(), reloaded));
  EXPECT_EQ(read(result), pattern(kBytes, 13));
  EXPECT_EQ(read(reloaded), pattern(kBytes, 14));
}

TEST_P(DeviceCopies, AQueueCanCarryBothDirections) {
  const Tensor there = on_device(pattern(kBytes, 15)), back = bytes_on_device();
  const HostBuffer host(*device_, kBytes);
  copy_out(there, host.get());
  device_->wait(CopyQueue::kD2h, device_->copy(CopyQueue::kD2h, {back.mutable_data_ptr(), host.get(), kBytes,
                                                                 CopyDirection::kH2d, 0}));
  EXPECT_EQ(read(back), pattern(kBytes, 15));
  const std::vector<CopyRecord> records = device_->take_copy_records();
  ASSERT_EQ(records.size(), 2U);
  EXPECT_EQ(records[1].direction, CopyDirection::kH2d);
}

TEST_P(DeviceCopies, WaitingForAFinishedCopyIsHarmless) {
  const Tensor there = on_device(pattern(kBytes, 16));
  const HostBuffer host(*device_, kBytes);
  const Device::Event first = copy_out(there, host.get()), second = copy_out(there, host.get());
  device_->wait(CopyQueue::kD2h, second);
  device_->wait(CopyQueue::kD2h, second);
  device_->wait(CopyQueue::kD2h, first);
  device_->take_copy_records();
  device_->wait(CopyQueue::kD2h, second);
  device_->synchronize();
  EXPECT_EQ(host.values(), pattern(kBytes, 16));
}

TEST_P(DeviceCopies, ManyCopiesInBothDirectionsAllArrive) {
  constexpr std::uint32_t kCopies = 60;
  std::mt19937 random(17);
  std::vector<std::unique_ptr<HostBuffer>> buffers;
  std::vector<Tensor> back;
  std::vector<Bytes> sizes;
  for (std::uint32_t i = 0; i < kCopies; ++i) {
    sizes.push_back(1 + static_cast<Bytes>(random() % 50000));
    buffers.push_back(std::make_unique<HostBuffer>(*device_, sizes.back()));
    const Tensor there = on_device(pattern(sizes.back(), i));
    device_->wait(CopyQueue::kD2h, copy_out(there, buffers.back()->get()));
    if (i % 3 != 0) continue;
    back.push_back(bytes_on_device(sizes.back()));
    device_->wait(CopyQueue::kH2d, copy_in(buffers.back()->get(), back.back()));
  }
  device_->synchronize();
  for (std::uint32_t i = 0; i < kCopies; ++i) {
    EXPECT_EQ(buffers[i]->values(), pattern(sizes[i], i)) << i;
    if (i % 3 != 0) continue;
    EXPECT_EQ(read(back[i / 3]), pattern(sizes[i], i)) << i;
  }
}

// --- Time ---

TEST_P(DeviceCopies, MarksFollowTheComputeStream) {
  const Tensor there = on_device(pattern(kBytes, 18));
  const HostBuffer host(*device_, kBytes);
  device_->take_exposed_ns();
  Nanoseconds exposed = 0;
  // A copy may end before the wait for it, if this thread had to wait for a core.
  for (int attempt = 0; exposed == 0 && attempt < 1000; ++attempt) {
    const Device::TimeMark before = device_->mark();
    device_->wait(CopyQueue::kD2h, copy_out(there, host.get()));
    const Device::TimeMark after = device_->mark();
    device_->synchronize();
    exposed = device_->take_exposed_ns();
    EXPECT_LE(exposed, device_->time_of(after) - device_->time_of(before));
  }
  EXPECT_GT(exposed, 0);
  EXPECT_EQ(device_->take_exposed_ns(), 0);
}

TEST_P(DeviceCopies, TheClockContinuesWhenMarksAreForgotten) {
  const Device::TimeMark first = device_->mark();
  device_->synchronize();
  const Nanoseconds before = device_->time_of(first);
  device_->forget_marks();
  const Device::TimeMark second = device_->mark();
  device_->synchronize();
  EXPECT_GE(device_->time_of(second), before);
}

TEST_P(DeviceCopies, CalibrationMeasuresBothDirectionsAndLeavesNothing) {
  device_->release_cache();
  const Bytes live = device_->live_bytes(), reserved = reserved_bytes();
  const CopyCalibration calibration = calibrate_copies(*device_);
  for (const auto* copies : {&calibration.d2h, &calibration.h2d}) {
    ASSERT_GE(copies->size(), 2u);
    for (const CopyTiming& copy : *copies) EXPECT_GE(copy.duration.median_ns, 0);
  }
  EXPECT_EQ(device_->live_bytes(), live);
  EXPECT_EQ(reserved_bytes(), reserved);
  EXPECT_EQ(device_->take_exposed_ns(), 0);
  EXPECT_THAT(device_->take_copy_records(), IsEmpty());
}

// --- Descriptions ---

TEST_P(DeviceCopies, DescribesItself) {
  EXPECT_FALSE(device_->description().empty());
  EXPECT_EQ(device_->torch_device().is_cuda(), GetParam() != "host");
  EXPECT_EQ(device_->is_virtual(), GetParam() == "virtual");
  EXPECT_EQ(device_->memory_bytes().has_value(), GetParam() != "host");
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceCopies, testing::ValuesIn(devices_under_test()),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace offprof
