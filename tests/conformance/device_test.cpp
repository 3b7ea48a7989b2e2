// The conformance suite of the devices: what the engine relies on, through the interface alone.
#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cstring>
#include <optional>
#include <random>

#include "engine/device.h"
#include "tests/conformance/devices_under_test.h"
#include "traces/error.h"

namespace offprof {
namespace {

using at::Tensor;
using testing::ElementsAre;
using testing::IsEmpty;

using Values = std::vector<std::uint8_t>;

/// Bytes that differ from place to place and from seed to seed.
Values pattern(Bytes bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  Values values(static_cast<std::size_t>(bytes));
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
  return values;
}

Values values_at(const std::byte* buffer, Bytes bytes) {
  Values values(static_cast<std::size_t>(bytes));
  std::memcpy(values.data(), buffer, values.size());
  return values;
}

/// Writes down what it is told: ids count from the first.
class Listener final : public AllocationListener {
 public:
  explicit Listener(AllocationId first) : first_(first) {}
  void on_alloc(AllocationId id, Bytes bytes) override { note("alloc", id, bytes); }
  void on_free(AllocationId id, Bytes bytes) override { note("free", id, bytes); }
  const std::vector<std::string>& calls() const { return calls_; }

 private:
  void note(const char* what, AllocationId id, Bytes bytes) {
    calls_.push_back(std::string(what) + " " + std::to_string(id - first_) + " " + std::to_string(bytes));
  }
  AllocationId first_;
  std::vector<std::string> calls_;
};

class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  /// Larger than what caches keep apart, so that freed memory comes back at once.
  static constexpr Bytes kBytes = 3 * kMiB;

  void SetUp() override {
    try {
      device_ = open_device_under_test(GetParam());
    } catch (const Error& error) {
      if (GetParam() != "cuda") throw;
      GTEST_SKIP() << error.what();
    }
  }

  void TearDown() override {
    if (!device_) return;
    device_->synchronize();
    EXPECT_THAT(hazards_seen(), IsEmpty());
    device_->release_cache();
  }

  bool has_cache() const { return GetParam() != "host"; }
  /// What the caching allocator has of the device now.
  Bytes reserved_bytes() {
    device_->reset_peak();
    return has_cache() ? device_->cache_use()->reserved_peak_bytes : 0;
  }

  at::TensorOptions options(at::ScalarType type = at::kByte) const {
    return at::TensorOptions(device_->torch_device()).dtype(type);
  }
  Tensor bytes_on_device(Bytes bytes = kBytes) const { return at::empty({bytes}, options()); }

  /// The host waits until it is there.
  Tensor on_device(Values values) const {
    Tensor tensor = bytes_on_device(static_cast<Bytes>(values.size()));
    tensor.copy_(at::from_blob(values.data(), tensor.sizes(), at::kByte));
    return tensor;
  }
  static Values read(const Tensor& tensor) {
    Values values(tensor.nbytes());
    at::from_blob(values.data(), tensor.sizes(), at::kByte).copy_(tensor);
    return values;
  }

  Device::Event copy_out(const Tensor& from, std::byte* to, std::int64_t tag = 0) {
    return device_->copy(CopyQueue::kD2h, {to, from.const_data_ptr(), static_cast<Bytes>(from.nbytes()),
                                           CopyDirection::kD2h, tag});
  }
  Device::Event copy_in(const std::byte* from, const Tensor& to, std::int64_t tag = 0) {
    return device_->copy(CopyQueue::kH2d, {to.mutable_data_ptr(), from, static_cast<Bytes>(to.nbytes()),
                                           CopyDirection::kH2d, tag});
  }

  std::unique_ptr<Device> device_;
};

/// Host memory for copies, given back at its end.
class HostBuffer {
 public:
  HostBuffer(Device& device, Bytes bytes)
      : device_(device), bytes_(bytes), memory_(device.allocate_host(bytes)) {}
  HostBuffer(Device& device, const Values& values) : HostBuffer(device, static_cast<Bytes>(values.size())) {
    std::memcpy(memory_, values.data(), values.size());
  }
  ~HostBuffer() { device_.free_host(memory_, bytes_); }
  HostBuffer(const HostBuffer&) = delete;
  HostBuffer& operator=(const HostBuffer&) = delete;

  std::byte* get() const { return memory_; }
  Values values() const { return values_at(memory_, bytes_); }

 private:
  Device& device_;
  Bytes bytes_;
  std::byte* memory_;
};

// --- Memory with its books ---

TEST_P(DeviceTest, CountsWhatTensorsAskFor) {
  const Bytes before = device_->live_bytes();
  {
    const Tensor a = at::empty({3}, options(at::kDouble)), b = bytes_on_device(5);
    EXPECT_EQ(device_->live_bytes(), before + 24 + 5);
    const c10::Storage c = device_->allocate(100);
    EXPECT_EQ(c.nbytes(), 100U);
    EXPECT_EQ(device_->live_bytes(), before + 24 + 5 + 100);
  }
  EXPECT_EQ(device_->live_bytes(), before);
}

TEST_P(DeviceTest, PeakIsTheHighestCountSinceItsReset) {
  device_->reset_peak();
  const Bytes before = device_->live_bytes();
  bytes_on_device(800);
  bytes_on_device(80);
  EXPECT_EQ(device_->peak_bytes(), before + 800);
  device_->reset_peak();
  EXPECT_EQ(device_->peak_bytes(), before);
}

TEST_P(DeviceTest, KnowsAStorageHoweverItIsViewed) {
  const AllocationId first = device_->next_allocation();
  const Tensor a = bytes_on_device(600), b = bytes_on_device(600);
  EXPECT_EQ(device_->allocation_of(a.storage()), first);
  EXPECT_EQ(device_->allocation_of(a.view({2, 300}).t().narrow(0, 5, 7).storage()), first);
  EXPECT_EQ(device_->allocation_of(b.storage()), first + 1);
}

TEST_P(DeviceTest, NeverUsesAnIdTwiceThoughAddressesComeBack) {
  Tensor a = bytes_on_device();
  const auto first = device_->allocation_of(a.storage());
  a = Tensor();
  a = bytes_on_device();
  EXPECT_EQ(device_->allocation_of(a.storage()), *first + 1);
}

TEST_P(DeviceTest, DoesNotKnowForeignOrEmptyMemory) {
  double numbers[4] = {};
  EXPECT_EQ(device_->allocation_of(at::from_blob(numbers, {4}, at::kDouble).storage()), std::nullopt);
  EXPECT_EQ(device_->allocation_of(bytes_on_device(0).storage()), std::nullopt);
}

TEST_P(DeviceTest, ListenerIsToldOfEveryAllocationAndFree) {
  Listener listener(device_->next_allocation());
  device_->set_listener(&listener);
  {
    Tensor a = bytes_on_device(16);
    const c10::Storage b = device_->allocate(30);
    a = Tensor();
  }
  device_->set_listener(nullptr);
  bytes_on_device(1);
  EXPECT_THAT(listener.calls(), ElementsAre("alloc 0 16", "alloc 1 30", "free 0 16", "free 1 30"));
}

TEST_P(DeviceTest, CapacityIsARealOutOfMemoryAfterWhichItGoesOn) {
  const Bytes before = device_->live_bytes();
  device_->set_capacity(before + 64 * kMiB);
  EXPECT_THROW(bytes_on_device(128 * kMiB), c10::OutOfMemoryError);
  EXPECT_THROW(device_->allocate(128 * kMiB), c10::OutOfMemoryError);
  const auto refusal = device_->take_out_of_memory();
  EXPECT_EQ(device_->take_out_of_memory(), std::nullopt);
  ASSERT_TRUE(refusal.has_value());
  EXPECT_EQ(refusal->asked_bytes, 128 * kMiB);
  EXPECT_EQ(refusal->live_bytes, before);
  EXPECT_EQ(refusal->capacity_bytes, before + 64 * kMiB);
  EXPECT_EQ(device_->live_bytes(), before);
  EXPECT_NO_THROW(bytes_on_device(32 * kMiB));
  device_->set_capacity(std::nullopt);
  EXPECT_NO_THROW(bytes_on_device(128 * kMiB));
}

// --- The caching allocator ---

TEST_P(DeviceTest, CacheHoldsAtLeastWhatTensorsUseUntilItIsReleased) {
  device_->release_cache();
  device_->reset_peak();
  const auto before = device_->cache_use();
  ASSERT_EQ(before.has_value(), has_cache());
  if (!before) return;
  bytes_on_device(32 * kMiB);
  EXPECT_GE(device_->cache_use()->allocated_peak_bytes, before->allocated_peak_bytes + 32 * kMiB);
  device_->reset_peak();
  EXPECT_GE(device_->cache_use()->reserved_peak_bytes, before->reserved_peak_bytes + 32 * kMiB);
  device_->release_cache();
  device_->reset_peak();
  EXPECT_EQ(device_->cache_use()->reserved_peak_bytes, before->reserved_peak_bytes);
}

TEST_P(DeviceTest, AllocatorStateNamesTheBlocksOfStorages) {
  const Tensor a = bytes_on_device(1000), b = bytes_on_device(3000);
  const auto id = device_->allocation_of(b.storage());
  const auto state = device_->allocator_state([&](AllocationId asked) { return asked == id ? 7 : -1; });
  ASSERT_EQ(state.has_value(), has_cache());
  if (!state) return;
  Bytes requested = 0;
  std::vector<Bytes> named;
  for (const AllocatorSegment& segment : state->segments) {
    for (const AllocatorBlock& block : segment.blocks) {
      requested += block.requested_bytes;
      if (block.storage == 7) named.push_back(block.requested_bytes);
    }
  }
  EXPECT_EQ(requested, device_->live_bytes());
  EXPECT_THAT(named, ElementsAre(3000));
}

// --- Host memory ---

TEST_P(DeviceTest, HostMemoryHasACap) {
  device_->set_host_capacity(kMiB);
  const HostBuffer fits(*device_, 600 * kKiB);
  EXPECT_THROW(device_->allocate_host(600 * kKiB), Error);
  const auto refusal = device_->take_host_refusal();
  ASSERT_TRUE(refusal.has_value());
  EXPECT_THAT(refusal->what(), testing::HasSubstr("600 KiB asked for, 600 KiB in use"));
  EXPECT_FALSE(device_->take_host_refusal().has_value());
  const HostBuffer fits_too(*device_, 400 * kKiB);
  device_->set_host_capacity(std::nullopt);
}

TEST_P(DeviceTest, PiecesOfHostMemoryAreApart) {
  const HostBuffer a(*device_, pattern(1000, 1)), b(*device_, pattern(kBytes, 2)), c(*device_, pattern(1, 3));
  EXPECT_EQ(a.values(), pattern(1000, 1));
  EXPECT_EQ(b.values(), pattern(kBytes, 2));
  EXPECT_EQ(c.values(), pattern(1, 3));
}

// --- Copies ---

TEST_P(DeviceTest, WhatIsCopiedOutAndInComesBackBitwise) {
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

TEST_P(DeviceTest, StridedTensorsComeOutDenselyInTheOrderOfTheirStrides) {
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
  if (device_->is_virtual()) return;  // a kernel gathers the slice, and there kernels do nothing
  const Tensor on_host = matrix.cpu().slice(1, 1, 8, 3).contiguous();
  EXPECT_EQ(sliced.values(), read(on_host.flatten()));
}

TEST_P(DeviceTest, CopiesOfAQueueRunOneAfterTheOtherAndAreRecordedOnce) {
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

TEST_P(DeviceTest, ACopySeesWhatTheComputeStreamWasGivenBeforeIt) {
  const Tensor first = on_device(pattern(kBytes, 8)), second = on_device(pattern(kBytes, 9));
  const Tensor there = bytes_on_device();
  const HostBuffer host(*device_, kBytes);
  there.copy_(first);
  there.copy_(second);
  device_->wait(CopyQueue::kD2h, copy_out(there, host.get()));
  device_->synchronize();
  EXPECT_EQ(host.values(), pattern(kBytes, 9));
}

TEST_P(DeviceTest, TheComputeStreamSeesWhatItWaitedFor) {
  const HostBuffer host(*device_, pattern(kBytes, 10));
  const Tensor there = bytes_on_device(), result = bytes_on_device();
  device_->wait(CopyQueue::kH2d, copy_in(host.get(), there));
  result.copy_(there);
  EXPECT_EQ(read(result), pattern(kBytes, 10));
  device_->synchronize();
}

TEST_P(DeviceTest, MemoryOfAWaitedCopyOutCanBeUsedAgainAtOnce) {
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

TEST_P(DeviceTest, ACopyInWaitsForWhoUsedItsMemoryBefore) {
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

TEST_P(DeviceTest, AQueueCanCarryBothDirections) {
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

TEST_P(DeviceTest, WaitingAgainOrForWhatIsLongOverIsHarmless) {
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

TEST_P(DeviceTest, ManyCopiesInBothDirectionsAllArrive) {
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

TEST_P(DeviceTest, MarksFollowTheComputeStream) {
  const Tensor there = on_device(pattern(kBytes, 18));
  const HostBuffer host(*device_, kBytes);
  device_->take_exposed_ns();
  const Device::TimeMark before = device_->mark();
  device_->wait(CopyQueue::kD2h, copy_out(there, host.get()));
  const Device::TimeMark after = device_->mark();
  device_->synchronize();
  const Nanoseconds between = device_->time_of(after) - device_->time_of(before);
  const Nanoseconds exposed = device_->take_exposed_ns();
  EXPECT_GT(exposed, 0);
  EXPECT_LE(exposed, between);
  EXPECT_EQ(device_->take_exposed_ns(), 0);
}

TEST_P(DeviceTest, TheClockGoesOnWhenMarksAreForgotten) {
  const Device::TimeMark first = device_->mark();
  device_->synchronize();
  const Nanoseconds before = device_->time_of(first);
  device_->forget_marks();
  const Device::TimeMark second = device_->mark();
  device_->synchronize();
  EXPECT_GE(device_->time_of(second), before);
}

TEST_P(DeviceTest, CalibrationMeasuresBothDirectionsAndLeavesNothingBehind) {
  device_->release_cache();
  const Bytes live = device_->live_bytes(), reserved = reserved_bytes();
  const Link link = device_->calibrate_link();
  for (const LinkDirection& direction : {link.d2h, link.h2d}) {
    EXPECT_GT(direction.bytes_per_second, 0);
    EXPECT_GE(direction.latency_ns, 0);
  }
  EXPECT_EQ(device_->live_bytes(), live);
  EXPECT_EQ(reserved_bytes(), reserved);
  EXPECT_EQ(device_->take_exposed_ns(), 0);
  EXPECT_THAT(device_->take_copy_records(), IsEmpty());
}

// --- What it says of itself ---

TEST_P(DeviceTest, DescribesItself) {
  EXPECT_FALSE(device_->description().empty());
  EXPECT_EQ(device_->torch_device().is_cuda(), GetParam() != "host");
  EXPECT_EQ(device_->is_virtual(), GetParam() == "virtual");
  EXPECT_EQ(device_->memory_bytes().has_value(), GetParam() != "host");
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceTest, testing::ValuesIn(devices_under_test()),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace offprof
