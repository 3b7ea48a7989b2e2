#include "engine/models/model_checkpoint.h"

#include <ATen/Functions.h>
#include <ATen/core/grad_mode.h>
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>
#include <tuple>
#include <utility>

#include "engine/models/meta_parameters.h"
#include "engine/tensors/files/tensor_dtype.h"
#include "engine/tensors/torch_dtype.h"
#include "engine/torch/dtype_name.h"
#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/base/printable.h"

namespace offprof {
namespace {

/// Number of names of each kind that an error lists.
constexpr std::size_t kMostNamesShown = 3;

constexpr const char* kHowToSave =
    "Save the values of this model's parameters and buffers under their own names: "
    "torch.save(dict(module.state_dict()), 'weights.pt'). `offprof inspect FILE` lists the names of a model "
    "and of a checkpoint.";

/// Memory of a tensor. Tensors with the same memory have the same value.
using Memory = std::tuple<const void*, std::int64_t, std::vector<std::int64_t>, std::vector<std::int64_t>>;

/// Returns a memory of its own for a meta parameter: its storage has no value.
Memory memory_of(const at::Tensor& tensor) {
  if (!tensor.has_storage() || has_meta_parameters(tensor)) return {tensor.unsafeGetTensorImpl(), 0, {}, {}};
  return {tensor.storage().unsafeGetStorageImpl(), tensor.storage_offset(), tensor.sizes().vec(),
          tensor.strides().vec()};
}

bool has_same_bits(const at::Tensor& a, const at::Tensor& b) {
  return as_bits(a.contiguous()).equal(as_bits(b.contiguous()));
}

std::string in_quotes(const std::string& name) {
  return fmt::format("'{}'", printable(name));
}

/// Returns the first few names, and dots if there are more.
std::string shortened(const std::vector<std::string>& names) {
  const std::size_t shown = std::min(names.size(), kMostNamesShown);
  const std::vector<std::string> first(names.begin(), names.begin() + static_cast<std::ptrdiff_t>(shown));
  return fmt::format("{}{}", fmt::join(first, ", "), shown < names.size() ? ", ..." : "");
}

void add_part(std::vector<std::string>& parts, const std::vector<std::string>& names, const char* what) {
  if (!names.empty()) parts.push_back(fmt::format("{} {} ({})", names.size(), what, shortened(names)));
}

/// Describes the difference in shape and dtype; empty if there is none.
std::string difference(const std::string& name, const at::Tensor& own, const CheckpointTensor& stored) {
  const std::string_view dtype = dtype_name(own.scalar_type());
  if (stored.dtype == dtype && own.sizes() == at::IntArrayRef(stored.sizes)) return {};
  return fmt::format("'{}' is {}{}, the model's is {}{}", printable(name), stored.dtype,
                     shape_text(stored.sizes), dtype, shape_text(own.sizes()));
}

}  // namespace

bool ModelCheckpoint::Mismatch::empty() const {
  return missing.empty() && unknown.empty() && different.empty();
}

ModelCheckpoint::NamedTensors ModelCheckpoint::tensors_of(const Model& model) {
  NamedTensors tensors;
  for (const auto& parameter : model.module.named_parameters())
    tensors.push_back({parameter.name, parameter.value});
  for (const auto& buffer : model.module.named_buffers())
    tensors.push_back({buffer.name, buffer.value, /*is_buffer=*/true});
  return tensors;
}

ModelCheckpoint::ModelCheckpoint(const std::string& path, const Model& model) : store_(path) {
  const auto tensors = tensors_of(model);
  const Mismatch mismatch = match(tensors);
  if (!mismatch.empty()) refuse(mismatch, model);
  for (const auto& [name, tensor, is_buffer] : tensors) {
    if (keeps_value(tensor)) continue;
    const std::string& shared = name_of(tensor);
    if (shared == name || !store_.tensors().contains(name)) continue;
    if (!has_same_bits(store_.get(name), store_.get(shared)))
      throw input_error(fmt::format("{}: '{}' and '{}' have different values, but they share memory in {}",
                                    path, printable(shared), printable(name), model.info.name),
                        "Leave one of them out.");
  }
}

/// Chooses the name in the checkpoint for each tensor of the model.
ModelCheckpoint::Mismatch ModelCheckpoint::match(const NamedTensors& tensors) {
  Mismatch mismatch;
  std::map<Memory, std::string> name_of_memory;
  std::set<std::string_view> names;
  for (const auto& [name, tensor, is_buffer] : tensors) {
    names.insert(name);
    const auto stored = store_.tensors().find(name);
    if (stored == store_.tensors().end()) continue;
    if (std::string why = difference(name, tensor, stored->second); !why.empty())
      mismatch.different.push_back(std::move(why));
    name_of_memory.emplace(memory_of(tensor), name);
  }
  for (const auto& [name, tensor, is_buffer] : tensors) {
    const auto known = name_of_memory.find(memory_of(tensor));
    if (known != name_of_memory.end())
      name_of_[tensor.unsafeGetTensorImpl()] = known->second;
    else if (is_buffer && !has_meta_parameters(tensor))
      kept_[tensor.unsafeGetTensorImpl()] = name;
    else
      mismatch.missing.push_back(in_quotes(name));
  }
  for (const auto& [name, unused] : store_.tensors())
    if (!names.contains(name)) mismatch.unknown.push_back(in_quotes(name));
  return mismatch;
}

void ModelCheckpoint::refuse(const Mismatch& mismatch, const Model& model) const {
  std::vector<std::string> parts;
  add_part(parts, mismatch.missing, "of the model's tensors are not in the checkpoint");
  add_part(parts, mismatch.unknown, "of the checkpoint's tensors are not in the model");
  add_part(parts, mismatch.different, "have another shape or dtype than in the model");
  throw input_error(fmt::format("{}: does not match the parameters and buffers of {}: {}", store_.path(),
                                model.info.name, fmt::join(parts, "; ")),
                    kHowToSave);
}

const std::string& ModelCheckpoint::name_of(const at::Tensor& tensor) const {
  const auto found = name_of_.find(tensor.unsafeGetTensorImpl());
  OFFPROF_CHECK(found != name_of_.end());
  return found->second;
}

const CheckpointTensor& ModelCheckpoint::stored(const at::Tensor& tensor) const {
  return store_.tensors().find(name_of(tensor))->second;
}

std::string ModelCheckpoint::note() const {
  if (kept_.empty()) return {};
  std::vector<std::string> names;
  for (const auto& [tensor, name] : kept_) names.push_back(in_quotes(name));
  std::ranges::sort(names);
  return fmt::format("{} of the model's buffers are not in {} and keep the values of the model ({})",
                     names.size(), store_.path(), shortened(names));
}

at::Tensor ModelCheckpoint::value_of(const at::Tensor& tensor) const {
  if (keeps_value(tensor)) return tensor;
  return store_.get(name_of(tensor));
}

void ModelCheckpoint::make_room(at::Tensor tensor) {
  const at::NoGradGuard no_grad;
  if (has_meta_parameters(tensor)) tensor.set_data(at::empty(tensor.sizes(), tensor.options()));
}

void ModelCheckpoint::read_into(at::Tensor tensor) const {
  if (keeps_value(tensor)) return;
  const at::NoGradGuard no_grad;
  make_room(tensor);
  const CheckpointTensor& value = stored(tensor);
  if (!value.strides.empty() || !tensor.is_contiguous()) {
    as_bits(tensor.detach()).copy_(as_bits(value_of(tensor)));
    return;
  }
  read_all(*value.file, value.offset, {static_cast<char*>(tensor.data_ptr()), tensor.nbytes()});
}

std::optional<FileRange> ModelCheckpoint::range_of(const at::Tensor& tensor) const {
  const CheckpointTensor& value = stored(tensor);
  const bool is_whole = tensor.storage_offset() == 0 && tensor.nbytes() == tensor.storage().nbytes();
  if (!value.strides.empty() || !tensor.is_contiguous() || !is_whole) return std::nullopt;
  return FileRange{value.file, value.offset, value.bytes};
}

}  // namespace offprof
