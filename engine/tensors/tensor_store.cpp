#include "engine/tensors/tensor_store.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <vector>

#include "engine/tensors/files/tensor_dtype.h"
#include "engine/tensors/torch_dtype.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

[[noreturn]] void refuse(const CheckpointTensor& stored, std::string_view name, const std::string& why) {
  throw input_error(fmt::format("{}: tensor '{}' cannot be loaded: {}", stored.file->name(), name, why));
}

/// Converts the sizes: LibTorch counts pairs of 4-bit numbers, safetensors files the numbers themselves.
std::vector<std::int64_t> sizes_in_torch(const CheckpointTensor& stored, std::string_view name) {
  std::vector<std::int64_t> sizes = stored.sizes;
  const bool counts_numbers = stored.strides.empty() && c10::multiply_integers(sizes) != stored.bytes;
  if (stored.dtype != torch_name(TensorDtype::kF4) || !counts_numbers) return sizes;
  if (sizes.empty() || sizes.back() % 2 != 0)
    refuse(stored, name, fmt::format("shape {} of F4 splits a byte", shape_text(sizes)));
  sizes.back() /= 2;
  return sizes;
}

}  // namespace

at::Tensor TensorStore::get(std::string_view name, at::Device device) const {
  const CheckpointTensor& stored = checkpoint_.at(name);
  const auto dtype = scalar_type_named(stored.dtype);
  if (!dtype) refuse(stored, name, fmt::format("LibTorch has no dtype for {}", stored.dtype));
  const std::vector<std::int64_t> sizes = sizes_in_torch(stored, name);
  const auto elements = stored.bytes / static_cast<Bytes>(at::elementSize(*dtype));
  const at::Tensor span = at::empty({elements}, at::TensorOptions(*dtype));
  read_all(*stored.file, stored.offset, {static_cast<char*>(span.mutable_data_ptr()), span.nbytes()});
  const bool is_row_major = stored.strides.empty();
  return (is_row_major ? span.view(sizes) : span.as_strided(sizes, stored.strides)).to(device);
}

}  // namespace offprof
