#include "profiler/training/lean_optimizers.h"

#include <ATen/core/grad_mode.h>
#include <ATen/ops/amax.h>
#include <ATen/ops/constant_pad_nd.h>
#include <ATen/ops/matmul.h>
#include <ATen/ops/zeros.h>

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>

namespace offprof {
namespace {

/// Values of a parameter that are updated at once: temporaries have 64 MiB.
constexpr std::int64_t kPartValues = std::int64_t{1} << 24;
static_assert(kPartValues % kBlockValues == 0);

struct AdamWConstants {
  double beta1 = 0.9, beta2 = 0.999, epsilon = 1e-8, weight_decay = 1e-2;
};

at::Tensor zeros_on(const at::Tensor& like, std::int64_t values, at::ScalarType type) {
  return at::zeros({values}, like.options().dtype(type).requires_grad(false));
}

/// Returns the distance from 1 to the next larger number of the type.
double epsilon_of(at::ScalarType type) {
  if (type == at::kBFloat16) return std::numeric_limits<at::BFloat16>::epsilon();
  if (type == at::kHalf) return std::numeric_limits<at::Half>::epsilon();
  return type == at::kDouble ? std::numeric_limits<double>::epsilon() : std::numeric_limits<float>::epsilon();
}

/// One moment of each value of a parameter, kept at a precision.
class Moment {
 public:
  Moment() = default;
  /// `is_signed`: values may be negative; others are kept as square roots, if they have eight bits.
  Moment(const at::Tensor& parameter, at::ScalarType type, bool is_signed) : is_signed_(is_signed) {
    const std::int64_t count = parameter.numel();
    values_ = zeros_on(parameter, count, type);
    if (type == at::kByte)
      scales_ = zeros_on(parameter, (count + kBlockValues - 1) / kBlockValues, at::kFloat);
  }

  /// Returns the values of a part in float32: a view of them if they are kept in it.
  at::Tensor load(std::int64_t begin, std::int64_t count) const {
    at::Tensor values = values_.narrow(0, begin, count).to(at::kFloat);
    if (!scales_.defined()) return values;
    if (is_signed_) values.sub_(kZeroCode);
    at::Tensor blocks = in_blocks(values);
    blocks.mul_(scales_of(begin, blocks));
    values = blocks.flatten().narrow(0, 0, count);
    return is_signed_ ? values : values.square_();
  }

  void store(std::int64_t begin, const at::Tensor& values) {
    at::Tensor kept = values_.narrow(0, begin, values.numel());
    if (!scales_.defined()) {
      if (!kept.is_alias_of(values)) kept.copy_(values);
      return;
    }
    at::Tensor blocks = in_blocks(is_signed_ ? values : values.sqrt());
    at::Tensor scales = scales_of(begin, blocks);
    scales.copy_(at::amax(blocks.abs(), {1}, /*keepdim=*/true).div_(is_signed_ ? kZeroCode - 1 : kMostCode));
    at::Tensor codes = blocks.div(scales.clamp_min(kLeastScale)).round_();
    if (is_signed_) codes.add_(kZeroCode);
    kept.copy_(codes.flatten().narrow(0, 0, values.numel()));
  }

  std::vector<at::Tensor> tensors() const {
    return scales_.defined() ? std::vector{values_, scales_} : std::vector{values_};
  }

 private:
  static constexpr int kZeroCode = 128, kMostCode = 255;
  static constexpr double kLeastScale = 1e-30;

  static at::Tensor in_blocks(const at::Tensor& values) {
    const std::int64_t missing = (kBlockValues - values.numel() % kBlockValues) % kBlockValues;
    return (missing == 0 ? values : at::constant_pad_nd(values, {0, missing})).view({-1, kBlockValues});
  }

  at::Tensor scales_of(std::int64_t begin, const at::Tensor& blocks) const {
    return scales_.narrow(0, begin / kBlockValues, blocks.size(0)).unsqueeze(1);
  }

  at::Tensor values_, scales_;
  bool is_signed_ = true;
};

class LeanAdamW final : public Optimizer {
 public:
  LeanAdamW(const OptimizerSettings& settings, const std::vector<at::Tensor>& parameters,
            double learning_rate)
      : settings_(settings), parameters_(parameters), learning_rate_(learning_rate) {}

  void step() override {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (const at::Tensor& parameter : parameters_)
      if (parameter.grad().defined()) update(parameter);
  }

  std::vector<at::Tensor> states_of(const at::Tensor& parameter) const override {
    const auto state = states_.find(parameter.unsafeGetTensorImpl());
    if (state == states_.end()) return {};
    std::vector<at::Tensor> tensors = state->second.first.tensors();
    for (const at::Tensor& tensor : state->second.second.tensors()) tensors.push_back(tensor);
    return tensors;
  }

  at::Tensor master_of(const at::Tensor& parameter) const override {
    const auto state = states_.find(parameter.unsafeGetTensorImpl());
    return state == states_.end() ? at::Tensor() : state->second.master;
  }

 private:
  struct State {
    Moment first, second;
    at::Tensor master{};  ///< in one dimension; undefined: none
  };

  at::ScalarType type_for(const at::Tensor& parameter) const {
    switch (settings_.state) {
      case StatePrecision::kOfParameter:
        return parameter.scalar_type();
      case StatePrecision::kFloat32:
        return at::kFloat;
      case StatePrecision::kBfloat16:
        return at::kBFloat16;
      case StatePrecision::kEightBits:
        return parameter.numel() < kLeastEightBitValues ? at::kFloat : at::kByte;
    }
    return at::kFloat;
  }

  State& state_of(const at::Tensor& parameter) {
    const auto [entry, is_new] = states_.try_emplace(parameter.unsafeGetTensorImpl());
    State& state = entry->second;
    if (!is_new) return state;
    const at::ScalarType type = type_for(parameter);
    state.first = Moment(parameter, type, true);
    state.second = Moment(parameter, type, false);
    if (settings_.has_master)
      state.master = parameter.detach().to(at::kFloat, false, /*copy=*/true).flatten();
    return state;
  }

  void update(const at::Tensor& parameter) {
    State& state = state_of(parameter);
    // If the parameter is not contiguous, as with the layout of channels-last, these are
    // copies.
    const at::Tensor values = parameter.detach().flatten(), gradient = parameter.grad().flatten();
    for (std::int64_t begin = 0; begin < parameter.numel(); begin += kPartValues) {
      const std::int64_t count = std::min(kPartValues, parameter.numel() - begin);
      const auto part = [&](const at::Tensor& of) { return of.narrow(0, begin, count); };
      update_part(state, begin, part(values), part(gradient));
    }
    if (!values.is_alias_of(parameter)) parameter.detach().copy_(values.view_as(parameter));
  }

  void update_part(State& state, std::int64_t begin, at::Tensor values, const at::Tensor& gradient) const {
    const double bias1 = 1 - std::pow(constants_.beta1, steps_),
                 bias2 = 1 - std::pow(constants_.beta2, steps_);
    at::Tensor weights = state.master.defined() ? state.master.narrow(0, begin, values.numel()) : values;
    at::Tensor first = state.first.load(begin, values.numel());
    at::Tensor second = state.second.load(begin, values.numel());
    {
      const at::Tensor wide = gradient.to(at::kFloat);
      first.lerp_(wide, 1 - constants_.beta1);
      second.mul_(constants_.beta2).addcmul_(wide, wide, 1 - constants_.beta2);
    }
    state.first.store(begin, first);
    state.second.store(begin, second);
    const at::Tensor divisor = second.sqrt().div_(std::sqrt(bias2)).add_(constants_.epsilon);
    weights.mul_(1 - learning_rate_ * constants_.weight_decay);
    weights.add_(first.div(divisor), -learning_rate_ / bias1);
    if (state.master.defined()) values.copy_(weights);
  }

  OptimizerSettings settings_;
  std::vector<at::Tensor> parameters_;
  double learning_rate_;
  AdamWConstants constants_;
  std::int64_t steps_ = 0;
  std::map<const c10::TensorImpl*, State> states_;
};

class Adafactor final : public Optimizer {
 public:
  explicit Adafactor(const std::vector<at::Tensor>& parameters) : parameters_(parameters) {}

  void step() override {
    const at::NoGradGuard no_grad;
    ++steps_;
    for (const at::Tensor& parameter : parameters_)
      if (parameter.grad().defined()) update(parameter.detach(), parameter.grad(), state_of(parameter));
  }

  std::vector<at::Tensor> states_of(const at::Tensor& parameter) const override {
    const auto state = states_.find(parameter.unsafeGetTensorImpl());
    return state == states_.end() ? std::vector<at::Tensor>{} : state->second;
  }

 private:
  /// Defaults of torch.optim.Adafactor.
  static constexpr double kLearningRate = 1e-2, kDecay = -0.8, kLeastRms = 1e-3, kClipping = 1.0;

  /// Returns the second moments of rows and columns, or of all values.
  std::vector<at::Tensor>& state_of(const at::Tensor& parameter) {
    const auto [entry, is_new] = states_.try_emplace(parameter.unsafeGetTensorImpl());
    std::vector<at::Tensor>& state = entry->second;
    if (!is_new) return state;
    const at::Tensor& gradient = parameter.grad();
    if (gradient.dim() < 2) {
      state.push_back(at::zeros(gradient.sizes(), gradient.options()));
      return state;
    }
    for (const std::int64_t dimension : {-1, -2}) {
      std::vector<std::int64_t> sizes = gradient.sizes().vec();
      sizes.at(gradient.dim() + dimension) = 1;
      state.push_back(at::zeros(sizes, gradient.options()));
    }
    return state;
  }

  static at::Tensor rms(const at::Tensor& values) {
    return values.norm().div_(std::sqrt(static_cast<double>(values.numel())));
  }

  void update(at::Tensor parameter, const at::Tensor& gradient, std::vector<at::Tensor>& state) const {
    const auto count = static_cast<double>(steps_);
    const double weight = std::pow(count, kDecay), rate = std::min(kLearningRate, 1 / std::sqrt(count));
    const double epsilon = epsilon_of(parameter.scalar_type());
    at::Tensor variance;
    if (gradient.dim() < 2) {
      variance = state[0].lerp_(gradient.square(), weight).clone();
    } else {
      for (const std::int64_t dimension : {-1, -2}) {
        const at::Tensor sums = gradient.norm(2, {dimension}, true).square_();
        state[-dimension - 1].lerp_(sums.div_(gradient.size(dimension)), weight);
      }
      variance = at::matmul(state[0], state[1]).div_(state[0].mean({-2}, true).clamp_min_(epsilon));
    }
    const at::Tensor update = variance.clamp_min_(epsilon * epsilon).rsqrt_().mul_(gradient);
    // Tensors of one value, so that nothing is read back from the device.
    const at::Tensor clip = rms(update).div_(kClipping).clamp_min_(1);
    const at::Tensor step = rms(parameter).clamp_min_(kLeastRms).mul_(rate).div_(clip);
    parameter.sub_(update.mul_(step));
  }

  std::vector<at::Tensor> parameters_;
  std::int64_t steps_ = 0;
  std::map<const c10::TensorImpl*, std::vector<at::Tensor>> states_;
};

}  // namespace

std::unique_ptr<Optimizer> make_lean_adamw(const OptimizerSettings& settings,
                                           const std::vector<at::Tensor>& parameters, double learning_rate) {
  return std::make_unique<LeanAdamW>(settings, parameters, learning_rate);
}

std::unique_ptr<Optimizer> make_adafactor(const std::vector<at::Tensor>& parameters) {
  return std::make_unique<Adafactor>(parameters);
}

}  // namespace offprof
