#include "engine/tensors/value_file.h"

#include <ATen/Functions.h>
#include <fmt/format.h>

#include <map>
#include <optional>
#include <utility>

#include "engine/tensors/files/safetensors_writer.h"
#include "engine/tensors/torch_dtype.h"
#include "engine/torch/dtype_name.h"
#include "traces/base/check.h"
#include "traces/base/error.h"
#include "traces/io/json_access.h"

namespace offprof {
namespace {

constexpr const char* kValue = "value";
constexpr const char* kScale = "scale";
constexpr const char* kZeroPoint = "zero_point";
constexpr const char* kDtype = "dtype";
constexpr const char* kStrides = "strides";
constexpr const char* kAxis = "axis";

/// The tensors of a file, all row-major and on the host.
using Parts = std::map<std::string, at::Tensor, std::less<>>;
using Metadata = std::map<std::string, std::string, std::less<>>;

[[noreturn]] void refuse(const SafetensorsFile& file, const std::string& what) {
  throw input_error(fmt::format("{}: is not the value of an offloaded tensor: {}", file.name(), what),
                    "Offload the tensor again.");
}

std::string_view bytes_in(const at::Tensor& tensor) {
  return {static_cast<const char*>(tensor.const_data_ptr()), tensor.nbytes()};
}

bool keeps_strides(const at::Tensor& tensor) {
  return !tensor.is_contiguous() && tensor.is_non_overlapping_and_dense();
}

/// Returns the tensor in row-major order on the host; shares memory if it is so already.
at::Tensor row_major(const at::Tensor& tensor) {
  const at::Tensor plain = tensor.detach().resolve_conj().resolve_neg();
  return (plain.is_contiguous() ? plain : as_bits(plain).contiguous().view(plain.scalar_type())).cpu();
}

void add_quantized(const at::Tensor& tensor, Parts& parts, Metadata& metadata) {
  parts[kValue] = at::int_repr(tensor).contiguous().cpu();
  if (tensor.qscheme() == at::kPerTensorAffine) {
    parts[kScale] = at::scalar_tensor(tensor.q_scale(), at::kDouble);
    parts[kZeroPoint] = at::scalar_tensor(tensor.q_zero_point(), at::kLong);
    return;
  }
  parts[kScale] = tensor.q_per_channel_scales().to(at::kDouble).contiguous().cpu();
  parts[kZeroPoint] = tensor.q_per_channel_zero_points().to(at::kLong).contiguous().cpu();
  metadata[kAxis] = std::to_string(tensor.q_per_channel_axis());
}

NewTensor described(const std::string& name, const at::Tensor& part) {
  NewTensor tensor{.name = name, .sizes = part.sizes().vec()};
  const auto dtype = file_dtype(part.scalar_type());
  tensor.dtype = dtype.value_or(TensorDtype::kU8);
  if (!dtype) tensor.sizes.push_back(static_cast<std::int64_t>(part.element_size()));
  return tensor;
}

void write_parts(const std::string& path, const Parts& parts, const Metadata& metadata) {
  std::vector<NewTensor> tensors;
  for (const auto& [name, part] : parts) tensors.push_back(described(name, part));
  SafetensorsWriter writer(path, std::move(tensors), metadata);
  for (const NewTensor& tensor : writer.tensors()) writer.write(bytes_in(parts.at(tensor.name)));
  writer.finish();
}

const StoredTensor& stored(const SafetensorsFile& file, const char* name) {
  const auto found = file.tensors().find(name);
  if (found == file.tensors().end()) refuse(file, fmt::format("there is no tensor '{}'", name));
  return found->second;
}

/// Parses integers in the metadata: `[1, 2]`, `1`; nullopt if they are missing.
std::optional<nlohmann::json> metadata_json(const SafetensorsFile& file, const char* name) {
  const auto found = file.metadata().find(name);
  if (found == file.metadata().end()) return std::nullopt;
  TextSource source(found->second);
  return parse_strict_document(source, fmt::format("{}: {}", file.name(), name));
}

at::ScalarType dtype_in(const SafetensorsFile& file) {
  const auto found = file.metadata().find(kDtype);
  const auto dtype = found == file.metadata().end() ? std::nullopt : scalar_type_named(found->second);
  if (!dtype) refuse(file, "its metadata do not name a dtype of LibTorch");
  return *dtype;
}

/// Returns the integer dtype in which a quantised dtype is stored.
at::ScalarType kept_as(at::ScalarType dtype) {
  return at::isQIntType(dtype) ? at::toUnderlying(dtype) : dtype;
}

/// Checks that the strides belong to a tensor of these sizes in which no two numbers share memory and no
/// memory is unused.
void check_strides(const SafetensorsFile& file, const ValueInfo& info) {
  std::map<std::int64_t, std::int64_t> by_stride;
  bool fits = info.strides.size() == info.sizes.size();
  for (std::size_t i = 0; fits && i < info.sizes.size(); ++i)
    if (info.sizes[i] != 1) fits = by_stride.emplace(info.strides[i], info.sizes[i]).second;
  std::int64_t expected = 1;
  for (const auto& [stride, size] : by_stride) {
    fits = fits && stride == expected;
    expected *= size;  // cannot overflow: the file has as many bytes
  }
  if (!fits)
    refuse(file,
           fmt::format("strides {} do not match shape {}", shape_text(info.strides), shape_text(info.sizes)));
}

at::Tensor read_part(const SafetensorsFile& file, const StoredTensor& part, at::ScalarType dtype,
                     at::IntArrayRef sizes) {
  at::Tensor tensor = at::empty(sizes, at::TensorOptions(dtype));
  OFFPROF_CHECK(static_cast<Bytes>(tensor.nbytes()) == part.bytes);
  file.read(part, {static_cast<char*>(tensor.mutable_data_ptr()), tensor.nbytes()});
  return tensor;
}

at::Tensor read_quantized(const SafetensorsFile& file, const ValueInfo& info, const at::Tensor& numbers) {
  const auto scale = stored(file, kScale), zero_point = stored(file, kZeroPoint);
  if (scale.dtype != TensorDtype::kF64 || zero_point.dtype != TensorDtype::kI64)
    refuse(file, "its scales have a different dtype");
  const at::Tensor scales = read_part(file, scale, at::kDouble, scale.sizes);
  const at::Tensor zero_points = read_part(file, zero_point, at::kLong, zero_point.sizes);
  const auto axis_json = metadata_json(file, kAxis);
  if (!axis_json && scales.numel() == 1 && zero_points.numel() == 1)
    return at::_make_per_tensor_quantized_tensor(numbers, scales.item<double>(),
                                                 zero_points.item<std::int64_t>());
  if (!axis_json || info.sizes.empty()) refuse(file, "it has several scales, but no axis for them");
  const auto axis = JsonValue(*axis_json, file.name() + ": axis")
                        .as_integer(0, static_cast<std::int64_t>(info.sizes.size()) - 1);
  const std::vector<std::int64_t> channels = {info.sizes[static_cast<std::size_t>(axis)]};
  if (scales.sizes() != channels || zero_points.sizes() != channels)
    refuse(file, fmt::format("it has {} scales for {} channels", scales.numel(), channels[0]));
  return at::_make_per_channel_quantized_tensor(numbers, scales, zero_points, axis);
}

}  // namespace

const char* why_not_offloaded(const at::Tensor& tensor) {
  if (!tensor.defined()) return "it is undefined";
  if (tensor.layout() != at::kStrided)
    return "it is sparse: offload its indices and values, or call to_dense()";
  if (tensor.is_meta()) return "it is on the meta device and has no values";
  if (tensor.unsafeGetTensorImpl()->key_set().has(c10::DispatchKey::NestedTensor))
    return "it is a nested tensor: offload its parts";
  if (!tensor.is_quantized()) return nullptr;
  const bool is_affine =
      tensor.qscheme() == at::kPerTensorAffine || tensor.qscheme() == at::kPerChannelAffine;
  const bool is_whole = tensor.scalar_type() == at::kQInt8 || tensor.scalar_type() == at::kQUInt8 ||
                        tensor.scalar_type() == at::kQInt32;
  return is_affine && is_whole ? nullptr
                               : "it is quantised, but not affinely to 8 or 32 bits: call dequantize()";
}

ValueInfo info_of(const at::Tensor& tensor) {
  ValueInfo info{.dtype = tensor.scalar_type(), .sizes = tensor.sizes().vec()};
  info.bytes = tensor.numel() * static_cast<Bytes>(tensor.element_size());
  if (!tensor.is_quantized() && keeps_strides(tensor)) info.strides = tensor.strides().vec();
  return info;
}

ValueInfo info_of(const SafetensorsFile& file) {
  const StoredTensor& value = stored(file, kValue);
  ValueInfo info{.dtype = dtype_in(file), .sizes = value.sizes, .bytes = value.bytes};
  const at::ScalarType numbers = kept_as(info.dtype);
  const auto dtype = file_dtype(numbers);
  bool fits = value.dtype == dtype.value_or(TensorDtype::kU8);
  if (!dtype) {
    fits = fits && !info.sizes.empty() &&
           info.sizes.back() == static_cast<std::int64_t>(at::elementSize(numbers));
    if (fits) info.sizes.pop_back();
  }
  if (!fits)
    refuse(file, fmt::format("{} is stored as {} of shape {}", dtype_name(info.dtype), name_of(value.dtype),
                             shape_text(value.sizes)));
  if (const auto strides = metadata_json(file, kStrides)) {
    info.strides = JsonValue(*strides, file.name() + ": strides").as_integers();
    check_strides(file, info);
  }
  return info;
}

void write_value(const std::string& path, const at::Tensor& tensor) {
  OFFPROF_CHECK(why_not_offloaded(tensor) == nullptr);
  const ValueInfo info = info_of(tensor);
  Parts parts;
  Metadata metadata = {{kDtype, std::string(dtype_name(info.dtype))}};
  if (!info.strides.empty()) metadata[kStrides] = shape_text(info.strides);
  if (tensor.is_quantized())
    add_quantized(tensor, parts, metadata);
  else
    parts[kValue] = row_major(tensor);
  write_parts(path, parts, metadata);
}

at::Tensor read_value(const SafetensorsFile& file) {
  const ValueInfo info = info_of(file);
  const at::Tensor numbers = read_part(file, stored(file, kValue), kept_as(info.dtype), info.sizes);
  if (at::isQIntType(info.dtype)) return read_quantized(file, info, numbers);
  if (info.strides.empty()) return numbers;
  const at::Tensor tensor = at::empty_strided(info.sizes, info.strides, numbers.options());
  as_bits(tensor).copy_(as_bits(numbers));
  return tensor;
}

}  // namespace offprof
