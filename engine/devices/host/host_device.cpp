#include "engine/devices/host/host_device.h"

#include <ATen/ExpandUtils.h>
#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <c10/core/StorageImpl.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <thread>
#include <vector>

#include "engine/devices/disk/tiered_device_disk.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Returns the cores that the process had before any device split them.
const std::vector<int>& process_cores() {
  static const std::vector<int> cores = allowed_cores();
  return cores;
}

/// Returns 0 on a single core, where a thread that stays awake takes the core from the computation.
Nanoseconds stays_awake_ns() {
  return process_cores().size() > 1 ? kStaysAwake : 0;
}

}  // namespace

HostDevice::HostDevice(CountedAllocator& allocator, const Link& link_cap)
    : allocator_(allocator), d2h_(link_cap, stays_awake_ns()), h2d_(link_cap, stays_awake_ns()) {}

std::string HostDevice::description() const {
  return "CPU, " + std::to_string(std::thread::hardware_concurrency()) + " cores";
}

/// Without fixed cores the system moves the copies between the computing core and another one, for minutes
/// each. Bytes copied by another core are in that core's caches.
void HostDevice::prepare_cores(int compute_threads) {
  const auto threads = static_cast<std::size_t>(std::max(compute_threads, 1));
  const CoreSplit split = split_cores(process_cores(), threads, getpid());
  d2h_.copy_on(split.copies);
  h2d_.copy_on(split.copies);
  stay_on(split.compute);
  copies_have_a_core_ = split.compute != split.copies;
}

std::optional<Nanoseconds> HostDevice::core_to_core_ns() {
  if (!copies_have_a_core_) return std::nullopt;
  return d2h_.time_round_trip();
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

void HostDevice::open_disk(const DiskRequest& request) {
  disk_ = open_tiered_device_disk(request, queues_);
}

/// Waits for the copy threads. The compute stream is the calling thread itself.
void HostDevice::synchronize() {
  d2h_.finish();
  h2d_.finish();
}

Device::Event HostDevice::copy(CopyQueue queue, const CopyRequest& request) {
  return stream(queue).enqueue({[to = request.to, from = request.from, bytes = request.bytes] {
                                  // A tensor without elements has no address, and memcpy must not get null.
                                  if (bytes > 0) std::memcpy(to, from, static_cast<std::size_t>(bytes));
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
  // The time to notice a finished copy belongs to the model, not to the stall.
  if (stream(queue).is_reached(event)) return stream(queue).wait(event);
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

}  // namespace offprof
