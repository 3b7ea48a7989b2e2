#include "tests/conformance/clockwork_device.h"

#include <algorithm>
#include <string_view>
#include <utility>

namespace offprof {
namespace {

/// Number of reads of the clock between two costs that shows that a caller is waiting for time to pass.
constexpr int kPatientLooks = 1000;
constexpr Nanoseconds kTick = 1;  // less than calibration can detect

constexpr std::size_t index_of(CopyQueue queue) {
  return queue == CopyQueue::kD2h ? 0 : 1;
}
constexpr std::size_t index_of(CopyDirection direction) {
  return direction == CopyDirection::kD2h ? 0 : 1;
}

}  // namespace

ClockworkDevice::ClockworkDevice(Device& host, const KnownCosts& costs)
    : DeviceWrapper(host),
      costs_(costs),
      callback_(
          at::addGlobalCallback(at::RecordFunctionCallback(&op_begins).scopes({at::RecordScope::FUNCTION}))) {
  current_ = this;
}

ClockworkDevice::~ClockworkDevice() {
  at::removeCallback(callback_);
  current_ = nullptr;
}

std::unique_ptr<at::ObserverContext> ClockworkDevice::op_begins(const at::RecordFunction& op) {
  const auto letters = static_cast<Nanoseconds>(std::string_view(op.name()).size());
  if (current_ != nullptr) current_->pass(letters * current_->costs_.op_ns_per_letter * current_->slowness_);
  return nullptr;
}

void ClockworkDevice::pass(Nanoseconds duration) const {
  if (duration == 0) return;
  now_ns_ += duration;
  looks_ = 0;
}

Device::TimeMark ClockworkDevice::mark() noexcept {
  if (++looks_ > kPatientLooks) now_ns_ += kTick;
  return now_ns_;
}

std::optional<AllocationId> ClockworkDevice::allocation_of(const c10::Storage& storage) const {
  pass(costs_.hook_ns);
  return DeviceWrapper::allocation_of(storage);
}

c10::Storage ClockworkDevice::allocate(Bytes bytes) {
  pass(costs_.launch_ns);
  return DeviceWrapper::allocate(bytes);
}

std::byte* ClockworkDevice::allocate_host(Bytes bytes) {
  pass(costs_.launch_ns);
  return DeviceWrapper::allocate_host(bytes);
}

Device::Event ClockworkDevice::copy(CopyQueue queue, const CopyRequest& request) {
  const bool is_out = request.direction == CopyDirection::kD2h;
  const KnownCosts::Direction& costs = is_out ? costs_.out : costs_.in;
  Nanoseconds& queue_free = queue_free_ns_[index_of(queue)];
  Nanoseconds& direction_free = direction_free_ns_[index_of(request.direction)];
  pass(costs_.enqueue_ns);
  const Nanoseconds begin = std::max({now_ns_ + costs_.start_ns, queue_free, direction_free});
  const Nanoseconds end = begin + costs.latency_ns + request.bytes / KnownCosts::kLine * costs.ns_per_line;
  queue_free = direction_free = end;
  records_.push_back({request.direction, begin, end, request.bytes, request.tag});
  copies_.push_back({DeviceWrapper::copy(queue, request), end});
  return copies_.size() - 1;
}

void ClockworkDevice::wait(CopyQueue queue, Event event) {
  pass(costs_.event_ns);
  const Queued& copy = copies_.at(event);
  DeviceWrapper::wait(queue, copy.inner);
  const Nanoseconds standing = std::max<Nanoseconds>(copy.end_ns - now_ns_, 0);
  pass(standing);
  exposed_ns_ += standing;
}

std::vector<CopyRecord> ClockworkDevice::take_copy_records() {
  DeviceWrapper::take_copy_records();
  become_idle();
  return std::exchange(records_, {});
}

void ClockworkDevice::synchronize() {
  DeviceWrapper::synchronize();
  become_idle();
}

void ClockworkDevice::become_idle() {
  for (const Nanoseconds free : queue_free_ns_) pass(std::max<Nanoseconds>(free - now_ns_, 0));
}

}  // namespace offprof
