#pragma once

#include <ATen/core/Tensor.h>

#include <cstdint>
#include <fstream>
#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "engine/tensors/files/tensor_dtype.h"
#include "engine/torch/dtype_name.h"

namespace offprof {

/// A tensor of a safetensors file. For tests.
struct WrittenTensor {
  std::string name;
  TensorDtype dtype = TensorDtype::kF32;
  std::vector<std::int64_t> sizes;
  std::string bytes;
};

/// Writes a safetensors file as its specification says. For tests.
inline void write_safetensors(const std::string& path, const std::vector<WrittenTensor>& tensors) {
  nlohmann::json header = nlohmann::json::object();
  std::string data;
  for (const WrittenTensor& tensor : tensors) {
    const std::size_t begin = data.size();
    data += tensor.bytes;
    header[tensor.name] = {
        {"dtype", name_of(tensor.dtype)}, {"shape", tensor.sizes}, {"data_offsets", {begin, data.size()}}};
  }
  const std::string text = header.dump();
  const std::uint64_t length = text.size();
  std::ofstream(path, std::ios::binary)
      .write(reinterpret_cast<const char*>(&length), sizeof length)
      .write(text.data(), static_cast<std::streamsize>(text.size()))
      .write(data.data(), static_cast<std::streamsize>(data.size()));
}

/// Returns the dtype in safetensors files; nullopt: the format lacks it (complex128), or counts its elements
/// otherwise (4-bit numbers).
inline std::optional<TensorDtype> file_dtype(at::ScalarType type) {
  if (type == at::kFloat4_e2m1fn_x2) return std::nullopt;
  for (int i = 0; i <= static_cast<int>(TensorDtype::kU64); ++i)
    if (torch_name(static_cast<TensorDtype>(i)) == dtype_name(type)) return static_cast<TensorDtype>(i);
  return std::nullopt;
}

/// Writes the values of tensors, row-major.
inline void write_safetensors(const std::string& path, const std::map<std::string, at::Tensor>& values) {
  std::vector<WrittenTensor> tensors;
  for (const auto& [name, value] : values) {
    const at::Tensor row_major = value.detach().contiguous();
    tensors.push_back({name,
                       file_dtype(value.scalar_type()).value(),
                       value.sizes().vec(),
                       {static_cast<const char*>(row_major.const_data_ptr()), row_major.nbytes()}});
  }
  write_safetensors(path, tensors);
}

}  // namespace offprof
