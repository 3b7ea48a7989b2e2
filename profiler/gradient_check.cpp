#include "profiler/gradient_check.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/max.h>
#include <ATen/ops/norm.h>

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

/// In float64, since sums of squares leave other types.
GradientError error_of(const std::string& name, const at::Tensor& expected, const at::Tensor& actual) {
  const at::Tensor exact = expected.to(at::kDouble).flatten(), found = actual.to(at::kDouble).flatten();
  const at::Tensor difference = found - exact;
  const auto exact_norm = exact.norm().item<double>(), found_norm = found.norm().item<double>();
  const auto difference_norm = difference.norm().item<double>();
  GradientError error{name};
  if (difference.numel() > 0) error.max_abs = difference.abs().max().item<double>();
  if (difference_norm == 0) return error;
  error.relative_norm = difference_norm / exact_norm;
  error.cosine = exact.dot(found).item<double>() / (exact_norm * found_norm);
  return error;
}

}  // namespace

std::optional<std::vector<GradientError>> gradient_errors(const std::vector<std::string>& names,
                                                          const std::vector<at::Tensor>& expected,
                                                          const std::vector<at::Tensor>& actual) {
  std::vector<GradientError> errors;
  for (std::size_t i = 0; i < names.size(); ++i) {
    if (expected[i].defined() != actual[i].defined()) return std::nullopt;
    if (!expected[i].defined()) continue;
    if (expected[i].sizes() != actual[i].sizes()) return std::nullopt;
    errors.push_back(error_of(names[i], expected[i], actual[i]));
  }
  return errors;
}

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
