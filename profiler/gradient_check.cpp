#include "profiler/gradient_check.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/max.h>

#include <cstring>

namespace offprof {
namespace {

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor dense_a = a.contiguous();
  const at::Tensor dense_b = b.contiguous();
  return std::memcmp(dense_a.const_data_ptr(), dense_b.const_data_ptr(), dense_a.nbytes()) == 0;
}

std::string difference(const at::Tensor& expected, const at::Tensor& actual) {
  if (!expected.defined() || !actual.defined()) return "one of the two has none";
  if (expected.sizes() != actual.sizes()) return "other sizes";
  return "by up to " + std::to_string((expected - actual).abs().max().item<double>());
}

}  // namespace

std::string compare_gradients(const std::vector<std::string>& names, const std::vector<at::Tensor>& expected,
                              const std::vector<at::Tensor>& actual) {
  std::size_t differing = 0;
  std::string first;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (same_bytes(expected[i], actual[i])) continue;
    if (differing++ == 0) first = names[i] + " differs " + difference(expected[i], actual[i]);
  }
  if (differing == 0) return "bitwise";
  return std::to_string(differing) + " of " + std::to_string(names.size()) + " parameters differ; " + first;
}

}  // namespace offprof
