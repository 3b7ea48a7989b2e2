#pragma once

#include <ATen/ATen.h>
#include <gmock/gmock.h>

#include <cstring>
#include <memory>
#include <random>
#include <string>
#include <vector>

#include "engine/devices/device.h"
#include "engine/devices/host_memory.h"
#include "tests/conformance/devices_under_test.h"
#include "traces/base/error.h"

namespace offprof {

using Values = std::vector<std::uint8_t>;

/// Returns bytes that depend on their position and on the seed.
inline Values pattern(Bytes bytes, std::uint32_t seed) {
  std::mt19937 random(seed);
  Values values(static_cast<std::size_t>(bytes));
  for (std::uint8_t& value : values) value = static_cast<std::uint8_t>(random());
  return values;
}

inline Values values_at(const std::byte* buffer, Bytes bytes) {
  Values values(static_cast<std::size_t>(bytes));
  std::memcpy(values.data(), buffer, values.size());
  return values;
}

class DeviceTest : public testing::TestWithParam<std::string> {
 protected:
  /// Larger than the pieces that caches keep separately, so that freed memory is reused at once.
  static constexpr Bytes kBytes = 3 * kMiB;

  void SetUp() override {
    try {
      device_ = open_device_under_test(GetParam());
    } catch (const Error& error) {
      if (GetParam() != "cuda" || error.kind() != ErrorKind::kEnvironment) throw;
      GTEST_SKIP() << error.what();
    }
  }

  void TearDown() override {
    if (!device_) return;
    device_->synchronize();
    EXPECT_THAT(hazards_seen(), testing::IsEmpty());
    device_->release_cache();
  }

  bool has_cache() const { return GetParam() != "host"; }
  /// Returns the bytes that the caching allocator holds from the device now.
  Bytes reserved_bytes() {
    device_->reset_peak();
    return has_cache() ? device_->cache_use()->reserved_peak_bytes : 0;
  }

  at::TensorOptions options(at::ScalarType type = at::kByte) const {
    return at::TensorOptions(device_->torch_device()).dtype(type);
  }
  at::Tensor bytes_on_device(Bytes bytes = kBytes) const { return at::empty({bytes}, options()); }

  /// Copies the values to the device. The host waits for the copy.
  at::Tensor on_device(Values values) const {
    at::Tensor tensor = bytes_on_device(static_cast<Bytes>(values.size()));
    tensor.copy_(at::from_blob(values.data(), tensor.sizes(), at::kByte));
    return tensor;
  }
  static Values read(const at::Tensor& tensor) {
    Values values(tensor.nbytes());
    at::from_blob(values.data(), tensor.sizes(), at::kByte).copy_(tensor);
    return values;
  }

  Device::Event copy_out(const at::Tensor& from, std::byte* to, std::int64_t tag = 0) {
    return device_->copy(CopyQueue::kD2h, {to, from.const_data_ptr(), static_cast<Bytes>(from.nbytes()),
                                           CopyDirection::kD2h, tag});
  }
  Device::Event copy_in(const std::byte* from, const at::Tensor& to, std::int64_t tag = 0) {
    return device_->copy(CopyQueue::kH2d, {to.mutable_data_ptr(), from, static_cast<Bytes>(to.nbytes()),
                                           CopyDirection::kH2d, tag});
  }

  std::unique_ptr<Device> device_;
};

/// Host memory for copies.
class HostBuffer final : public HostMemory {
 public:
  using HostMemory::HostMemory;
  HostBuffer(Device& device, const Values& values) : HostMemory(device, static_cast<Bytes>(values.size())) {
    std::memcpy(get(), values.data(), values.size());
  }
  Values values() const { return values_at(get(), bytes()); }
};

}  // namespace offprof
