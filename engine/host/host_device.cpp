#include "engine/host/host_device.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StorageImpl.h>

#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "engine/calibration.h"

namespace offprof {

HostDevice::HostDevice(CountedAllocator& allocator, const Link& link_cap)
    : allocator_(allocator), d2h_(link_cap), h2d_(link_cap) {}

std::string HostDevice::description() const {
  return "CPU, " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

c10::Storage HostDevice::allocate(Bytes bytes) {
  return {c10::make_intrusive<c10::StorageImpl>(c10::StorageImpl::use_byte_size_t(), bytes, &allocator_,
                                                /*resizable=*/true)};
}

std::byte* HostDevice::allocate_host(Bytes bytes) {
  try {
    return pool_.allocate(bytes);
  } catch (const Error& error) {
    host_refusal_ = error;
    throw;
  }
}

void HostDevice::set_host_capacity(std::optional<Bytes> bytes) {
  pool_.set_cap(bytes.value_or(std::numeric_limits<Bytes>::max()));
}

Device::Event HostDevice::copy(CopyQueue queue, const CopyRequest& request) {
  return stream(queue).enqueue({[to = request.to, from = request.from, bytes = request.bytes] {
                                  std::memcpy(to, from, static_cast<std::size_t>(bytes));
                                },
                                request.direction, request.bytes, request.tag});
}

Device::Event HostDevice::copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to,
                                           std::int64_t tag) {
  const auto bytes = static_cast<Bytes>(from.numel() * static_cast<std::int64_t>(from.element_size()));
  const auto copy = [from, to] {
    const at::NoGradGuard no_grad;
    const std::vector<std::int64_t> strides = at::infer_dense_strides(from.sizes(), from.strides());
    at::from_blob(to, from.sizes(), strides, from.options()).copy_(from);
  };
  return stream(queue).enqueue({copy, CopyDirection::kD2h, bytes, tag});
}

void HostDevice::wait(CopyQueue queue, Event event) {
  const Nanoseconds begin = steady_now();
  stream(queue).wait(event);
  exposed_ns_ += steady_now() - begin;
}

std::vector<CopyRecord> HostDevice::take_copy_records() {
  std::vector<CopyRecord> records = d2h_.take_records();
  const std::vector<CopyRecord> other = h2d_.take_records();
  records.insert(records.end(), other.begin(), other.end());
  return records;
}

namespace {

constexpr Bytes kLargeCopy = 8 * kMiB;
constexpr int kCalibrationCopies = 15;

/// From asking for the copy to knowing that it is done, as the engine sees it.
std::vector<Nanoseconds> time_copies(Device& device, CopyQueue queue, CopyDirection direction, Bytes bytes) {
  std::vector<Nanoseconds> durations;
  for (int i = 0; i < kCalibrationCopies; ++i) {
    const c10::Storage storage = device.allocate(bytes);
    std::byte* host = device.allocate_host(bytes);
    auto* on_device = static_cast<std::byte*>(storage.mutable_data());
    std::byte* from = direction == CopyDirection::kD2h ? on_device : host;
    std::byte* to = direction == CopyDirection::kD2h ? host : on_device;
    std::memset(from, 1, static_cast<std::size_t>(bytes));
    const Nanoseconds begin = steady_now();
    device.wait(queue, device.copy(queue, {to, from, bytes, direction, 0}));
    durations.push_back(steady_now() - begin);
    device.free_host(host, bytes);
  }
  return durations;
}

}  // namespace

Link HostDevice::calibrate_link() {
  const auto calibrate = [&](CopyQueue queue, CopyDirection direction) {
    return calibrate_direction(kLargeCopy,
                               [&](Bytes bytes) { return time_copies(*this, queue, direction, bytes); });
  };
  const Link link{calibrate(CopyQueue::kD2h, CopyDirection::kD2h),
                  calibrate(CopyQueue::kH2d, CopyDirection::kH2d)};
  take_copy_records();
  take_exposed_ns();
  return link;
}

}  // namespace offprof
