#include "engine/transforms/transform_contract.h"

#include <ATen/ops/empty.h>
#include <ATen/ops/full.h>
#include <ATen/ops/randint.h>
#include <ATen/ops/randn.h>
#include <fmt/format.h>

#include <array>
#include <cstring>
#include <limits>
#include <utility>

#include "engine/torch/dtype_name.h"

namespace offprof {
namespace {

/// Sizes around those of bytes, blocks, and the pieces that transforms process.
constexpr std::array<std::int64_t, 10> kElements = {1, 2, 7, 8, 9, 63, 128, 1000, 65537, 300001};

struct Case {
  std::string name;
  at::Tensor values;
};

std::string name_of(const Case& tried) {
  return fmt::format("{} {} of {}", tried.values.numel(), tried.name, dtype_name(tried.values.scalar_type()));
}

/// Overwrites the first values with the special ones, as many as fit.
at::Tensor with(at::Tensor values, std::initializer_list<double> special) {
  std::int64_t i = 0;
  for (const double value : special)
    if (i < values.numel()) values.narrow(0, i++, 1).fill_(value);
  return values;
}

std::vector<Case> floating_cases(std::int64_t elements, const at::TensorOptions& options) {
  constexpr double kBeyondAll = std::numeric_limits<double>::infinity();
  constexpr double kNan = std::numeric_limits<double>::quiet_NaN();
  const auto normal = [&] { return at::randn({elements}, options); };
  const double largest = options.dtype() == at::kHalf ? 65504.0 : 3.0e38;
  return {{"normal numbers", normal()},
          {"large numbers with an offset", normal().mul_(0.25).add_(1000)},
          {"equal numbers", at::full({elements}, -1.375, options)},
          {"zeros", at::full({elements}, 0.0, options)},
          {"tiny numbers", normal().mul_(1e-40)},
          {"numbers of the largest range", with(normal(), {largest, -largest})},
          {"numbers with NaN", with(normal(), {kNan})},
          {"numbers with infinities", with(normal(), {kBeyondAll, -kBeyondAll, kNan})},
          {"NaN", at::full({elements}, kNan, options)},
          {"infinities", at::full({elements}, -kBeyondAll, options)}};
}

std::vector<Case> cases_of(at::ScalarType type, std::int64_t elements, c10::Device device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(type);
  if (at::isFloatingType(type)) return floating_cases(elements, options);
  if (type == at::kBool)
    return {{"booleans", at::randint(2, {elements}, options)},
            {"all true", at::full({elements}, true, options)},
            {"all false", at::full({elements}, false, options)}};
  return {{"integers", at::randint(0, 100, {elements}, options)}};
}

bool is_same_bytes(const at::Tensor& a, const at::Tensor& b) {
  const at::Tensor x = a.cpu().contiguous(), y = b.cpu().contiguous();
  return x.nbytes() == y.nbytes() && std::memcmp(x.const_data_ptr(), y.const_data_ptr(), x.nbytes()) == 0;
}

/// Compares elements; NaN equals NaN, and each infinity equals itself.
at::Tensor is_same_or_nan(const at::Tensor& a, const at::Tensor& b) {
  return a.eq(b).logical_or_(a.isnan().logical_and_(b.isnan()));
}

/// Describes the element with the worst violation of its bound; empty: none.
std::string beyond_bound(const at::Tensor& values, const at::Tensor& found, const at::Tensor& bound) {
  const at::Tensor expected = values.to(at::kDouble), actual = found.to(at::kDouble);
  const at::Tensor error = (actual - expected).abs();
  const at::Tensor keeps =
      error.le(bound).logical_or_(is_same_or_nan(expected, actual)).logical_or_(bound.isinf());
  if (keeps.all().item<bool>()) return {};
  const auto worst = keeps.to(at::kByte).argmin().item<std::int64_t>();
  return fmt::format("element {} is {}, but {} within {} is required", worst, actual[worst].item<double>(),
                     expected[worst].item<double>(), bound[worst].item<double>());
}

class ContractCheck {
 public:
  explicit ContractCheck(const Transform& transform) : transform_(transform) {}

  void check(const Case& tried) {
    const at::ScalarType type = tried.values.scalar_type();
    const std::int64_t elements = tried.values.numel();
    const at::Tensor before = tried.values.clone();
    const Encoded encoded = transform_.encode(tried.values);
    if (!is_same_bytes(before, tried.values)) return find(tried, "encode changes the values");
    if (encoded.bytes.scalar_type() != at::kByte || !encoded.bytes.is_contiguous())
      return find(tried, "encode does not return dense bytes");
    if (encoded.bytes.numel() != transform_.encoded_bytes(type, elements) ||
        static_cast<std::int64_t>(encoded.bytes.storage().nbytes()) != encoded.bytes.numel())
      find(tried, "the encoded tensor does not have encoded_bytes() bytes, or shares its storage");
    if (!is_same_bytes(encoded.bytes, transform_.encode(tried.values).bytes))
      find(tried, "the same values are encoded to different bytes");
    check_decoded(tried, transform_.decode(encoded, type, elements));
  }

  std::vector<std::string> take_findings() { return std::move(findings_); }

 private:
  void check_decoded(const Case& tried, const at::Tensor& found) {
    if (found.scalar_type() != tried.values.scalar_type() || found.sizes() != tried.values.sizes() ||
        found.storage().nbytes() != tried.values.nbytes())
      return find(tried, "decode returns a different type or size");
    if (transform_.is_lossless()) {
      if (!is_same_bytes(found, tried.values))
        find(tried, "the transform is lossless, but decode returns different bits");
      return;
    }
    const std::string worst = beyond_bound(tried.values, found, transform_.error_bound(tried.values));
    if (!worst.empty()) find(tried, worst);
  }

  void find(const Case& tried, const std::string& what) { findings_.push_back(name_of(tried) + ": " + what); }

  const Transform& transform_;
  std::vector<std::string> findings_;
};

}  // namespace

std::vector<std::string> breaches_of_contract(const Transform& transform, c10::Device device) {
  ContractCheck check(transform);
  for (const at::ScalarType type :
       {at::kFloat, at::kDouble, at::kHalf, at::kBFloat16, at::kBool, at::kByte, at::kInt, at::kLong})
    if (transform.takes(type))
      for (const std::int64_t elements : kElements)
        for (const Case& tried : cases_of(type, elements, device)) check.check(tried);
  return check.take_findings();
}

}  // namespace offprof
