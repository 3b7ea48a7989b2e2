#include "engine/autograd/saved_contents.h"

#include <algorithm>
#include <utility>

#include "engine/recompute/recompute.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

bool has_plain_storage(const at::Tensor& value) {
  return value.defined() && value.layout() == at::kStrided && !value.is_quantized() && value.has_storage() &&
         !value.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

Bytes bytes_of(const at::Tensor& value) {
  return static_cast<Bytes>(value.numel() * static_cast<std::int64_t>(value.element_size()));
}

Movability movability_of(const at::Tensor& value, std::optional<AllocationId> allocation, StorageRole role) {
  if (value.storage().nbytes() == 0) return Movability::kEmpty;
  if (!allocation) return Movability::kUnsupportedLayout;
  switch (role) {
    case StorageRole::kActivation:
      return Movability::kMovable;
    case StorageRole::kParameter:
      return Movability::kParameter;
    case StorageRole::kBuffer:
      return Movability::kBuffer;
    case StorageRole::kInput:
      return Movability::kInput;
    case StorageRole::kResident:
      return Movability::kResident;
    case StorageRole::kGathered:
      return Movability::kParameterGroup;
  }
  OFFPROF_CHECK(false);
}

}  // namespace

SavedContents::SavedContents(const DeviceAllocator& allocator, std::shared_ptr<const Residents> residents)
    : allocator_(allocator),
      residents_(std::move(residents)),
      first_allocation_(allocator.next_allocation()) {}

PackRequest SavedContents::describe(const at::Tensor& value, const at::Tensor& saved, bool in_backward) {
  PackRequest request;
  saved_in_.push_back(0);
  if (!has_plain_storage(value)) {
    request.movability = Movability::kUnsupportedLayout;
    return request;
  }
  if (residents_->is_parameter_group && residents_->is_parameter_group(value.storage())) {
    request.movability = Movability::kParameterGroup;
    request.tensor_bytes = bytes_of(value);
    return request;
  }
  const std::optional<AllocationId> allocation = allocator_.allocation_of(value.storage());
  saved_in_.back() = allocation.value_or(0);
  if (in_backward && allocation && was_unpacked(*allocation)) {
    request.movability = Movability::kUnpacked;
    request.tensor_bytes = bytes_of(value);
    return request;
  }
  const StorageRole role = role_of(allocation.value_or(0));
  request.storage = allocation.value_or(0);
  request.storage_bytes = static_cast<Bytes>(value.storage().nbytes());
  request.tensor_bytes = bytes_of(value);
  request.movability = movability_of(value, allocation, role);
  const bool is_input = request.movability == Movability::kInput && is_made_in_step(request.storage);
  if (is_input || request.movability == Movability::kMovable)
    request.version = version(value, request.storage, at::ScalarType::Undefined);
  request.is_parameter =
      role == StorageRole::kParameter && residents_->parameters.contains(saved.unsafeGetTensorImpl());
  return request;
}

std::uint32_t SavedContents::encoded_version(const at::Tensor& value, AllocationId allocation) {
  return version(value, allocation, value.scalar_type());
}

std::uint32_t SavedContents::version(const at::Tensor& value, AllocationId allocation,
                                     at::ScalarType encoded_as) {
  const c10::VariableVersion& counter = value.unsafeGetTensorImpl()->version_counter();
  const std::uint32_t value_version = version_of(value);
  std::vector<Content>& contents = contents_[allocation];
  const auto found = std::find_if(contents.rbegin(), contents.rend(), [&](const Content& content) {
    return content.version == value_version && content.encoded_as == encoded_as &&
           is_same_counter(content.counter, counter);
  });
  if (found != contents.rend()) return static_cast<std::uint32_t>(contents.rend() - found - 1);
  contents.push_back({counter, value_version, encoded_as});
  return static_cast<std::uint32_t>(contents.size() - 1);
}

void SavedContents::add_unpacked(SavedId tensor, const c10::Storage& storage, bool is_reloaded) {
  if (saved_in_[tensor] != 0) unpacked_.push_back(saved_in_[tensor]);
  if (!is_reloaded) return;
  if (const auto allocation = allocator_.allocation_of(storage)) unpacked_.push_back(*allocation);
}

bool SavedContents::was_unpacked(AllocationId allocation) {
  unpacked_set_.insert(unpacked_.begin(), unpacked_.end());
  unpacked_.clear();
  return unpacked_set_.contains(allocation);
}

void SavedContents::backward_end() {
  const auto is_older = [this](AllocationId allocation) { return !is_made_in_step(allocation); };
  std::erase_if(unpacked_, is_older);
  std::erase_if(unpacked_set_, is_older);
}

StorageRole SavedContents::role_of(AllocationId allocation) const {
  const auto found = residents_->roles.find(allocation);
  if (found != residents_->roles.end()) return found->second;
  if (inputs_.contains(allocation)) return StorageRole::kInput;
  return is_made_in_step(allocation) ? StorageRole::kActivation : StorageRole::kResident;
}

std::optional<AllocationId> SavedContents::allocation_of(const at::Tensor& value) const {
  return has_plain_storage(value) ? allocator_.allocation_of(value.storage()) : std::nullopt;
}

void SavedContents::add_inputs(std::span<const at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors)
    if (const auto allocation = allocation_of(tensor); allocation && !outputs_.contains(*allocation))
      inputs_.insert(*allocation);
}

void SavedContents::add_outputs(std::span<const at::Tensor> tensors) {
  for (const at::Tensor& tensor : tensors)
    if (const auto allocation = allocation_of(tensor); allocation && !inputs_.contains(*allocation))
      outputs_.insert(*allocation);
}

}  // namespace offprof
