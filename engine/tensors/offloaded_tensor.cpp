#include "engine/tensors/offloaded_tensor.h"

#include <fmt/format.h>

#include <utility>

#include "engine/tensors/files/safetensors.h"
#include "engine/torch/dtype_name.h"
#include "traces/base/error.h"
#include "traces/base/printable.h"

namespace offprof {

OffloadedTensor::OffloadedTensor(const at::Tensor& tensor, std::string name,
                                 std::shared_ptr<OffloadFolder> folder)
    : claim_(std::move(folder), std::move(name)), target_(tensor.defined() ? tensor.device() : at::kCPU) {
  write(tensor);
}

OffloadedTensor::OffloadedTensor(OffloadFolder::Claim claim, at::Device target)
    : claim_(std::move(claim)), target_(target), info_(info_of(SafetensorsFile(path().string()))) {}

OffloadedTensor OffloadedTensor::open(std::string name, std::shared_ptr<OffloadFolder> folder,
                                      at::Device target) {
  OffloadedTensor tensor(OffloadFolder::Claim(std::move(folder), std::move(name)), at::kCPU);
  tensor.to(target);
  return tensor;
}

std::int64_t OffloadedTensor::numel() const {
  return c10::multiply_integers(info_.sizes);
}

at::Tensor OffloadedTensor::load() const {
  return read_value(SafetensorsFile(path().string())).to(target_);
}

OffloadedTensor& OffloadedTensor::to(at::Device target) {
  if (target.is_meta())
    throw input_error(
        fmt::format("offloaded tensor '{}' cannot be loaded to the meta device, which holds no values",
                    printable(name())));
  target_ = target;
  return *this;
}

void OffloadedTensor::write(const at::Tensor& tensor) {
  if (const char* const why = why_not_offloaded(tensor))
    throw input_error(fmt::format("tensor '{}' cannot be offloaded: {}", printable(name()), why));
  write_value(path().string(), tensor);
  info_ = info_of(tensor);
}

void OffloadedTensor::update_values(const at::Tensor& values, bool strict_shape, bool strict_dtype) {
  const auto refuse = [&](const std::string& what, const char* flag) {
    throw input_error(fmt::format("offloaded tensor '{}' {}", printable(name()), what),
                      fmt::format("To replace it anyway, pass {} = false.", flag));
  };
  if (strict_shape && values.defined() && values.sizes() != sizes())
    refuse(fmt::format("has shape {}, but the new values have {}", shape_text(sizes()),
                       shape_text(values.sizes())),
           "strict_shape");
  if (strict_dtype && values.defined() && values.scalar_type() != dtype())
    refuse(fmt::format("has dtype {}, but the new values have {}", dtype_name(dtype()),
                       dtype_name(values.scalar_type())),
           "strict_dtype");
  write(values);
}

void OffloadedTensor::discard() && {
  std::filesystem::remove(path());
}

}  // namespace offprof
