#include "profiler/stages/gradient_check.h"

#include <ATen/ops/abs.h>
#include <ATen/ops/dot.h>
#include <ATen/ops/max.h>
#include <ATen/ops/norm.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <limits>

namespace offprof {
namespace {

/// Two passes show if passes differ at all. More run only if a gradient differs although it did not in these
/// two, or differs by more: a few passes may agree by chance.
constexpr int kPlainPasses = 2, kMostPlainPasses = 5;
/// Largest allowed ratio to the noise, since the maximum of a few differences only estimates how large they
/// get.
constexpr double kMostNoises = 10;

bool same_bytes(const at::Tensor& a, const at::Tensor& b) {
  if (a.defined() != b.defined()) return false;
  if (!a.defined()) return true;
  if (a.sizes() != b.sizes() || a.scalar_type() != b.scalar_type()) return false;
  const at::Tensor dense_a = a.contiguous();
  const at::Tensor dense_b = b.contiguous();
  return std::memcmp(dense_a.const_data_ptr(), dense_b.const_data_ptr(), dense_a.nbytes()) == 0;
}

std::string difference(const at::Tensor& expected, const at::Tensor& actual) {
  if (!expected.defined() || !actual.defined()) return "one of the two steps has none";
  if (expected.sizes() != actual.sizes()) return "the sizes differ";
  return fmt::format("by up to {:.3g}", (expected - actual).abs().max().item<double>());
}

/// Returns the largest difference; 0 if the bits are equal, and infinity if the tensors cannot be compared.
double distance(const at::Tensor& expected, const at::Tensor& actual) {
  constexpr double kIncomparable = std::numeric_limits<double>::infinity();
  if (same_bytes(expected, actual)) return 0;
  if (!expected.defined() || !actual.defined() || expected.sizes() != actual.sizes()) return kIncomparable;
  const auto largest = (expected - actual).abs().max().item<double>();
  if (std::isnan(largest)) return kIncomparable;
  return std::max(largest, std::numeric_limits<double>::denorm_min());  // 0 and -0 differ too
}

/// Computes in float64, since sums of squares exceed the range of other types.
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

/// Differences between gradients under a policy and those of the first plain pass.
struct GradientReference::Differences {
  std::size_t noisy = 0;         ///< parameters that differ no more than plain passes do
  double largest_noisy = 0;      ///< largest difference of these
  std::size_t beyond_noise = 0;  ///< parameters that differ otherwise
};

void GradientReference::compute() {
  if (!expected_.empty()) return;
  expected_ = plain_();
  noise_.assign(expected_.size(), 0);
  passes_ = 1;
  while (passes_ < kPlainPasses) repeat();
}

void GradientReference::repeat() {
  const std::vector<at::Tensor> again = plain_();
  for (std::size_t i = 0; i < expected_.size(); ++i)
    noise_[i] = std::max(noise_[i], distance(expected_[i], again[i]));
  ++passes_;
}

GradientReference::Differences GradientReference::compare(const std::vector<at::Tensor>& actual) const {
  Differences differences;
  for (std::size_t i = 0; i < expected_.size(); ++i) {
    const double off = distance(expected_[i], actual[i]);
    if (off == 0) continue;
    const bool is_noise = std::isfinite(off) && noise_[i] > 0 && off <= kMostNoises * noise_[i];
    ++(is_noise ? differences.noisy : differences.beyond_noise);
    if (is_noise) differences.largest_noisy = std::max(differences.largest_noisy, off);
  }
  return differences;
}

GradientCheck GradientReference::check(const std::vector<at::Tensor>& actual, bool may_lose) {
  compute();
  Differences differences = compare(actual);
  if (differences.noisy + differences.beyond_noise == 0) return {"bitwise"};
  if (may_lose)
    if (auto errors = gradient_errors(names_, expected_, actual)) return {"lossy", std::move(*errors)};
  const auto is_noisy = [](double noise) { return noise > 0; };
  for (; differences.beyond_noise > 0 && passes_ < kMostPlainPasses; differences = compare(actual)) repeat();
  if (differences.beyond_noise > 0) return {compare_gradients(names_, expected_, actual)};
  return {fmt::format("{}, by up to {:.3g} in {} of {} parameters; with it by up to {:.3g} in {}",
                      kNotReproducible, *std::ranges::max_element(noise_),
                      std::ranges::count_if(noise_, is_noisy), names_.size(), differences.largest_noisy,
                      differences.noisy)};
}

}  // namespace offprof
