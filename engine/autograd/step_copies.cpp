#include "engine/autograd/step_copies.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>

#include <algorithm>
#include <utility>

#include "engine/autograd/held_tensor.h"
#include "engine/torch/dtype_name.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Clears the lazy conjugation and negation bits, so that copy_ does not apply them: the restored tensor
/// carries them.
void strip_lazy_marks(c10::TensorImpl& impl) {
  impl._set_conj(false);
  impl._set_neg(false);
}

/// Returns the whole storage as a flat tensor of the tensor's type.
at::Tensor flat_values(const at::Tensor& value) {
  const auto values = shell_of(value);
  strip_lazy_marks(*values);
  const auto elements = static_cast<std::int64_t>(values->storage().nbytes() / values->itemsize());
  values->set_storage_offset(0);
  values->set_sizes_contiguous(elements);
  return at::Tensor(values);
}

/// Returns the first `bytes` of the storage. No operator runs: its time would not be in the transform's
/// profile.
at::Tensor bytes_in(const c10::Storage& storage, Bytes bytes) {
  const c10::DispatchKey key = c10::computeDispatchKey(at::kByte, at::kStrided, storage.device());
  auto values = c10::make_intrusive<at::TensorImpl>(c10::Storage(storage), c10::DispatchKeySet(key),
                                                    caffe2::TypeMeta::Make<std::uint8_t>());
  values->set_sizes_contiguous({bytes});
  return at::Tensor(std::move(values));
}

/// Work of the engine's own on the compute stream, during its lifetime.
class OwnWork {
 public:
  explicit OwnWork(Device& device) : device_(device) { device_.begin_own_work(); }
  ~OwnWork() { device_.end_own_work(); }
  OwnWork(const OwnWork&) = delete;
  OwnWork& operator=(const OwnWork&) = delete;

 private:
  Device& device_;
};

}  // namespace

StepCopies::StepCopies(Device& device, bool copies_tensors, CopyQueue reload_queue)
    : device_(device),
      copies_tensors_(copies_tensors),
      reload_queue_(reload_queue),
      no_storage_(device.allocate(0)),
      disk_(device.disk()),
      host_peak_bytes_(device.saved_host_bytes()) {}

StepCopies::~StepCopies() {
  for (std::size_t i = 0; i < copies_.size(); ++i) {
    const Copy& copy = copies_[i];
    if (copy.host == nullptr) continue;
    wait_at_any_rate(copy);
    disk_.settle(static_cast<CopyId>(i));
    device_.free_host(copy.host, copy.bytes);
    device_.count_saved_host(-copy.bytes);
  }
}

void StepCopies::wait_at_any_rate(const Copy& copy) noexcept {
  try {
    wait(copy);
  } catch (...) {
    become_idle(device_);
  }
}

void StepCopies::run(const WaitOut& command) {
  wait(copies_[command.copy]);
}

void StepCopies::run(const WaitIn& command) {
  wait(copies_[command.copy]);
  disk_.check_read(command.copy);
}

std::byte* StepCopies::take_host(Bytes bytes) {
  std::byte* const host = device_.allocate_host(bytes);
  host_bytes_ += bytes;
  device_.count_saved_host(bytes);
  host_peak_bytes_ = std::max(host_peak_bytes_, device_.saved_host_bytes());
  return host;
}

void StepCopies::run(const WriteDisk& command) {
  const Copy& copy = copies_[command.copy];
  disk_.write(command, copy.host, copy.queue);
}

void StepCopies::run(const ReadDisk& command) {
  Copy& copy = copies_[command.copy];
  copy.host = take_host(command.bytes);
  disk_.read(command, copy.host);
}

void StepCopies::run(const FreeHost& command) {
  device_.free_host(std::exchange(copies_[command.copy].host, nullptr), command.bytes);
  host_bytes_ -= command.bytes;
  device_.count_saved_host(-command.bytes);
}

void StepCopies::run(const CopyOut& command, const at::Tensor& value) {
  std::byte* host = take_host(command.bytes);
  // Add the copy first, so that a later exception leaks nothing. An encoded tensor has its copy already.
  const bool is_packed = command.copy < static_cast<CopyId>(copies_.size());
  Copy& copy = is_packed ? copies_[command.copy] : copies_.emplace_back();
  copy.host = host;
  copy.bytes = command.bytes;
  if (!is_packed) copy.device_storage = value.storage();
  copy.event = queue_copy_out(copy, value, command.copy);
  d2h_bytes_ += command.bytes;
}

Device::Event StepCopies::queue_copy_out(const Copy& copy, const at::Tensor& value, CopyId id) {
  if (copies_tensors_ && !is_dense(value)) {
    const auto source = shell_of(value);
    strip_lazy_marks(*source);
    const OwnWork own_work(device_);
    return device_.copy_out_densely(copy.queue, at::Tensor(source), copy.host, id);
  }
  const void* from = copies_tensors_ ? value.const_data_ptr() : copy.device_storage.data();
  return device_.copy(copy.queue, {copy.host, from, copy.bytes, CopyDirection::kD2h, id});
}

void StepCopies::run(const CopyIn& command) {
  Copy& copy = copies_[command.copy];
  copy.device_storage =
      taken_memory_ ? *std::exchange(taken_memory_, std::nullopt) : device_.allocate(command.bytes);
  copy.reloaded = true;
  disk_.hold_for_read(command.copy, reload_queue_);
  copy.event = device_.copy(reload_queue_, {copy.device_storage.mutable_data(), copy.host, command.bytes,
                                            CopyDirection::kH2d, command.copy});
  copy.queue = reload_queue_;  // set together with the event: if the copy had failed, neither would be new
  h2d_bytes_ += command.bytes;
}

void StepCopies::run(const Encode& command, const at::Tensor& value,
                     std::shared_ptr<const Transform> transform) {
  OFFPROF_CHECK(command.copy == static_cast<CopyId>(copies_.size()));
  const at::AutoDispatchBelowAutograd below_autograd;
  const OwnWork own_work(device_);
  const at::Tensor values = flat_values(value);
  Encoded encoded = transform->encode(values);
  TORCH_CHECK(static_cast<Bytes>(encoded.bytes.storage().nbytes()) == command.bytes, "saved tensor ",
              command.tensor, ": ", transform->name(), " produced ", encoded.bytes.storage().nbytes(),
              " bytes for ", values.numel(), " elements of ", dtype_name(values.scalar_type()),
              " instead of ", command.bytes, ": the tensor differs from the recorded tensor");
  Copy& copy = copies_.emplace_back();
  copy.bytes = command.bytes;
  copy.device_storage = encoded.bytes.storage();
  copy.transform = std::move(transform);
  copy.type = values.scalar_type();
  copy.elements = values.numel();
  copy.rest = std::move(encoded.rest);
}

c10::Storage StepCopies::decoded(const Copy& copy) const {
  const at::AutoDispatchBelowAutograd below_autograd;
  const OwnWork own_work(device_);
  const at::Tensor bytes = bytes_in(copy.device_storage, copy.bytes);
  return copy.transform->decode({bytes, copy.rest}, copy.type, copy.elements).storage();
}

void StepCopies::run(const Decode& command) {
  Copy& copy = copies_[command.copy];
  copy.device_storage = taken_memory_ ? *std::exchange(taken_memory_, std::nullopt) : decoded(copy);
  copy.reloaded = true;
  copy.rest = {};
}

void StepCopies::run(const DropForRecompute& command) {
  OFFPROF_CHECK(command.copy == static_cast<CopyId>(copies_.size()));
  Copy& copy = copies_.emplace_back();
  copy.bytes = command.bytes;
  copy.device_storage = no_storage_;
}

void StepCopies::run(const Recompute& command, const std::function<c10::Storage()>& make) {
  Copy& copy = copies_[command.copy];
  copy.device_storage = taken_memory_ ? *std::exchange(taken_memory_, std::nullopt) : make();
  copy.reloaded = true;
}

}  // namespace offprof
