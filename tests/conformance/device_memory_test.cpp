// Conformance suite of the devices, part two: device and host memory, through the interface only.
#include "tests/conformance/device_fixture.h"

#include <optional>

namespace offprof {
namespace {

using at::Tensor;
using testing::ElementsAre;

class DeviceMemory : public DeviceTest {};

/// Records its calls; ids count from the first.
class Listener final : public AllocationListener {
 public:
  explicit Listener(AllocationId first) : first_(first) {}
  void on_alloc(AllocationId id, Bytes bytes, std::int32_t) override { note("alloc", id, bytes); }
  void on_free(AllocationId id, Bytes bytes, std::int32_t) override { note("free", id, bytes); }
  const std::vector<std::string>& calls() const { return calls_; }

 private:
  void note(const char* what, AllocationId id, Bytes bytes) {
    calls_.push_back(std::string(what) + " " + std::to_string(id - first_) + " " + std::to_string(bytes));
  }
  AllocationId first_;
  std::vector<std::string> calls_;
};

// --- Counts of memory ---

TEST_P(DeviceMemory, CountsRequestedBytes) {
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

TEST_P(DeviceMemory, PeakIsTheHighestCountSinceItsReset) {
  device_->reset_peak();
  const Bytes before = device_->live_bytes();
  bytes_on_device(800);
  bytes_on_device(80);
  EXPECT_EQ(device_->peak_bytes(), before + 800);
  device_->reset_peak();
  EXPECT_EQ(device_->peak_bytes(), before);
}

TEST_P(DeviceMemory, FindsTheAllocationOfAnyView) {
  const AllocationId first = device_->next_allocation();
  const Tensor a = bytes_on_device(600), b = bytes_on_device(600);
  EXPECT_EQ(device_->allocation_of(a.storage()), first);
  EXPECT_EQ(device_->allocation_of(a.view({2, 300}).t().narrow(0, 5, 7).storage()), first);
  EXPECT_EQ(device_->allocation_of(b.storage()), first + 1);
}

TEST_P(DeviceMemory, NeverReusesAnIdEvenIfTheAddressComesBack) {
  Tensor a = bytes_on_device();
  const auto first = device_->allocation_of(a.storage());
  a = Tensor();
  a = bytes_on_device();
  EXPECT_EQ(device_->allocation_of(a.storage()), *first + 1);
}

TEST_P(DeviceMemory, DoesNotKnowForeignOrEmptyMemory) {
  double numbers[4] = {};
  EXPECT_EQ(device_->allocation_of(at::from_blob(numbers, {4}, at::kDouble).storage()), std::nullopt);
  EXPECT_EQ(device_->allocation_of(bytes_on_device(0).storage()), std::nullopt);
}

TEST_P(DeviceMemory, NotifiesTheListenerOfEveryAllocationAndFree) {
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

TEST_P(DeviceMemory, CapacityGivesARealOutOfMemoryError) {
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

TEST_P(DeviceMemory, CacheHoldsAtLeastTheBytesInUseUntilItIsReleased) {
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

TEST_P(DeviceMemory, AllocatorStateNamesTheBlocksOfStorages) {
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

TEST_P(DeviceMemory, HostMemoryHasACap) {
  device_->set_host_capacity(kMiB);
  const HostBuffer fits(*device_, 600 * kKiB);
  EXPECT_THROW(device_->allocate_host(600 * kKiB), Error);
  const auto refusal = device_->take_host_refusal();
  ASSERT_TRUE(refusal.has_value());
  EXPECT_THAT(refusal->what(), testing::HasSubstr("600 KiB requested, 600 KiB in use"));
  EXPECT_FALSE(device_->take_host_refusal().has_value());
  const HostBuffer fits_too(*device_, 400 * kKiB);
  device_->set_host_capacity(std::nullopt);
}

TEST_P(DeviceMemory, HostBuffersDoNotOverlap) {
  const HostBuffer a(*device_, pattern(1000, 1)), b(*device_, pattern(kBytes, 2)), c(*device_, pattern(1, 3));
  EXPECT_EQ(a.values(), pattern(1000, 1));
  EXPECT_EQ(b.values(), pattern(kBytes, 2));
  EXPECT_EQ(c.values(), pattern(1, 3));
}

TEST_P(DeviceMemory, EmptyHostBuffersDoNotAffectOthers) {
  const HostBuffer a(*device_, pattern(1000, 1));
  {
    const HostBuffer none(*device_, 0), none_either(*device_, 0);
    const HostBuffer b(*device_, pattern(2000, 2));
    EXPECT_NE(none.get(), b.get());
  }
  const HostBuffer c(*device_, pattern(2000, 3)), d(*device_, pattern(2000, 4));
  EXPECT_EQ(a.values(), pattern(1000, 1));
  EXPECT_EQ(c.values(), pattern(2000, 3));
  EXPECT_EQ(d.values(), pattern(2000, 4));
}

INSTANTIATE_TEST_SUITE_P(Devices, DeviceMemory, testing::ValuesIn(devices_under_test()),
                         [](const auto& device) { return device.param; });

}  // namespace
}  // namespace offprof
