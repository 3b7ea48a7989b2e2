#include "profiler/calibration/transform_profiles.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <ATen/ops/empty.h>
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <string>
#include <utility>

#include "engine/torch/dtype_name.h"
#include "profiler/recorder/measured_use.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

struct Shape {
  std::string dtype;
  std::int64_t elements = 0;
  auto operator<=>(const Shape&) const = default;
};

/// Returns the dtypes and element counts of tensors that may be encoded.
std::set<Shape> shapes_in(const StepProgram& program) {
  std::set<Shape> shapes;
  for (const SavedTensor& saved : program.saved)
    if (saved.movability == Movability::kMovable && is_dense(*saved.layout) &&
        saved.bytes == program.storages[saved.storage].bytes)
      shapes.insert({saved.layout->dtype, elements_of(*saved.layout)});
  return shapes;
}

std::optional<at::ScalarType> type_of(const std::string& dtype) {
  for (int i = 0; i < static_cast<int>(at::ScalarType::NumOptions); ++i)
    if (dtype_name(static_cast<at::ScalarType>(i)) == dtype) return static_cast<at::ScalarType>(i);
  return std::nullopt;
}

/// Measures one transform on tensors of one shape.
class CostMeasurement {
 public:
  CostMeasurement(Device& device, const Transform& transform, at::ScalarType type, std::int64_t elements)
      : device_(device), transform_(transform), type_(type), elements_(elements) {
    values_ = at::empty({elements}, at::TensorOptions(device.torch_device()).dtype(type));
    fill();
  }

  /// Fills with values that are common and take a typical time to encode.
  void fill() {
    constexpr std::int64_t kIntegers = 100;
    if (type_ == at::kBool)
      values_.bernoulli_();
    else if (at::isIntegralType(type_, /*includeBool=*/false))
      values_.random_(0, kIntegers);
    else if (at::isComplexType(type_) || (at::isFloatingType(type_) && !at::isFloat8Type(type_)))
      values_.normal_();
    else
      values_.zero_();
  }

  TransformCost measure() {
    TransformCost cost;
    cost.dtype = dtype_name(type_);
    cost.elements = elements_;
    cost.encoded_bytes = transform_.encoded_bytes(type_, elements_);
    cost.encode = use_of(
        device_, [&] { encoded_ = transform_.encode(values_); }, [&] { encoded_ = {}; });
    check("pack", cost.encode, cost.encoded_bytes);
    encoded_ = transform_.encode(values_);
    at::Tensor decoded;
    cost.decode = use_of(
        device_, [&] { decoded = transform_.decode(encoded_, type_, elements_); },
        [&] { decoded = at::Tensor(); });
    device_.forget_marks();
    check("unpack", cost.decode, static_cast<Bytes>(values_.nbytes()));
    return cost;
  }

 private:
  /// Checks that the one remaining allocation is the result.
  void check(const char* what, const TransformUse& use, Bytes result_bytes) const {
    std::vector<Bytes> left;
    std::vector<Bytes> allocated;
    for (const TransformMemory& step : use.memory)
      if (step.bytes > 0)
        allocated.push_back(step.bytes);
      else
        allocated[step.freed] = 0;
    std::ranges::copy_if(allocated, std::back_inserter(left), [](Bytes bytes) { return bytes > 0; });
    if (left.size() == 1 && left.front() == result_bytes) return;
    throw environment_error(
        fmt::format("the transform {} violates its contract: {} of {} elements of {} leaves {} allocations{} "
                    "instead of one of {} bytes",
                    transform_.name(), what, elements_, dtype_name(type_), left.size(),
                    left.empty() ? "" : fmt::format(" (the first of {} bytes)", left.front()), result_bytes));
  }

  Device& device_;
  const Transform& transform_;
  at::ScalarType type_;
  std::int64_t elements_;
  at::Tensor values_;
  Encoded encoded_;
};

}  // namespace

std::vector<TransformProfile> profile_transforms(Device& device,
                                                 std::span<const std::shared_ptr<const Transform>> transforms,
                                                 const StepProgram& program) {
  const at::AutoDispatchBelowAutograd below_autograd;
  std::vector<TransformProfile> profiles;
  const std::set<Shape> shapes = shapes_in(program);
  for (const auto& transform : transforms) {
    TransformProfile& profile = profiles.emplace_back();
    profile.name = transform->name();
    profile.is_lossless = transform->is_lossless();
    for (const Shape& shape : shapes)
      if (const auto type = type_of(shape.dtype); type && transform->takes(*type))
        profile.costs.push_back(CostMeasurement(device, *transform, *type, shape.elements).measure());
  }
  return profiles;
}

}  // namespace offprof
