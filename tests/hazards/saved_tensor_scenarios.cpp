// Scenarios of tensors that autograd may have to save.
#include <torch/csrc/autograd/autograd.h>
#include <torch/csrc/autograd/custom_function.h>

#include "tests/hazards/scenarios.h"

namespace offprof {
namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

/// Saves tensors of every number type; backward must see each with its old values.
class EveryNumber final : public torch::autograd::Function<EveryNumber> {
 public:
  static constexpr at::ScalarType kTypes[] = {
      at::kByte,          at::kChar,        at::kShort,        at::kInt,          at::kLong,
      at::kBool,          at::kHalf,        at::kBFloat16,     at::kFloat,        at::kDouble,
      at::kFloat8_e4m3fn, at::kFloat8_e5m2, at::kComplexFloat, at::kComplexDouble};

  static Tensor forward(AutogradContext* context, const Tensor& x) {
    variable_list saved;
    for (const at::ScalarType type : kTypes) saved.push_back(x.detach().abs().to(type));
    context->save_for_backward(saved);
    return x * 2;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    Tensor gradient = gradients[0] * 2;
    for (const Tensor& saved : context->get_saved_variables()) {
      const Tensor real = saved.is_complex() ? at::real(saved) : saved;
      gradient = gradient + real.to(gradient.scalar_type());
    }
    return {gradient};
  }
};

void every_number_in_a_custom_function(Graph& g) {
  (EveryNumber::apply(g.x * 3) * g.x).sum().backward();
}

/// Saves its input, its output, and a tensor that it created itself.
class CustomProduct final : public torch::autograd::Function<CustomProduct> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b) {
    const Tensor output = a.mm(b).tanh();
    context->save_for_backward({a, b, output, at::ones_like(output) * 3});
    return output;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor gradient = gradients[0] * (1 - saved[2] * saved[2]) * saved[3];
    return {gradient.mm(saved[1].t()), saved[0].t().mm(gradient)};
  }
};

void custom_function(Graph& g) {
  const Tensor h = CustomProduct::apply(g.x.exp(), g.w * 0.1);
  (h * h.sin()).sum().backward();
}

Tensor overlapping(const Tensor& h) {
  return h.as_strided({5, 7, 4}, {8, 1, 1});
}

void overlapping_views(Graph& g) {
  const Tensor h = (g.x * 2).contiguous();
  overlapping(h).sin().sum().backward({}, /*retain_graph=*/true);
  (overlapping(h) * overlapping(h).exp()).sum().backward();
}

void broadcast(Graph& g) {
  const Tensor row = (g.x * 2).mean(0, true), column = (g.x * 3).mean(1, true);
  (row * column + row.exp() / (column.pow(2) + 1)).sum().backward();
}

/// Uses the same numbers as complex pairs and as bits.
void one_storage_as_several_types(Graph& g) {
  const Tensor whole = (g.x + (g.x.round() - g.x).detach()) * 2, z = at::complex(whole, whole.flip(1));
  const Tensor bits = (whole * 1).view(at::kLong).bitwise_and(1).to(at::kDouble);
  (at::view_as_real(z).pow(2).sum() + at::real(z * z).sum() + (whole * bits).pow(2).sum()).backward();
}

/// Saves a tensor that is in `host` memory instead of the device's.
void number_that_is_not_the_devices(Graph& g) {
  const Tensor scale = at::scalar_tensor(1.5, at::TensorOptions().dtype(at::kDouble)) * 2;
  (g.x.exp() * scale).sin().sum().backward();
}

/// Saves tensors whose layout has no storage on the device, or not a plain one, beside others.
class OtherLayouts final : public torch::autograd::Function<OtherLayouts> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& x) {
    const Tensor plain = x.detach().abs(), numbers = plain.to(at::kFloat);
    context->save_for_backward({plain.to_sparse(), plain.to_sparse_csr(), plain,
                                at::quantize_per_tensor(numbers, 0.1, 3, at::kQInt8),
                                at::quantize_per_tensor(numbers * 2, 0.2, 0, at::kQUInt8)});
    return x * 2;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    Tensor gradient = gradients[0] * 2;
    for (const Tensor& saved : context->get_saved_variables())
      gradient = gradient + plain_of(saved).to(gradient.scalar_type());
    return {gradient};
  }

 private:
  static Tensor plain_of(const Tensor& value) {
    if (value.is_quantized()) return value.dequantize();
    return value.layout() == at::kStrided ? value : value.to_dense();
  }
};

}  // namespace

void sparse_and_quantised_tensors(Graph& g) {
  (OtherLayouts::apply(g.x * 3) * g.x).sum().backward();
}

namespace {

/// Saves views that are dense in no order of their dimensions: they have holes.
void with_holes(Graph& g) {
  const Tensor h = (g.x * 2).slice(0, 0, 6, 2).slice(1, 1, 8, 3);
  (h.sin() * h.t().contiguous().t().exp()).sum().backward();
}

void views_of_parameters(Graph& g) {
  const Tensor h = g.x.mm(g.w).tanh();
  (h.mm(g.w.t()) * g.x + g.w.view({6, 8}).sin() * g.x.narrow(0, 0, 6)).sum().backward();
}

void tied_weights(Graph& g) {
  g.x.mm(g.w).tanh().mm(g.w.t()).sin().mm(g.w).sum().backward();
}

void written_in_place(Graph& g) {
  Tensor h = g.x * 2;
  const Tensor before = h.exp();  // autograd saves its output, not `h`
  h.mul_(3);
  h.narrow(0, 0, 2).add_(1);
  Tensor k = (h * h + before).add_(1).sigmoid_();
  (k * k).sum().backward();
}

/// Uses buffers that forward itself writes and that are older than the step. Their values affect the
/// gradients.
void buffers_of_batch_norm(Graph& g) {
  const Tensor mean = at::zeros({3}, g.x.options().requires_grad(false)), variance = at::ones_like(mean);
  Tensor h = graphs::image(g.x);
  for (int layer = 0; layer < 2; ++layer)
    h = at::batch_norm(h, {}, {}, mean, variance, /*training=*/true, 0.1, 1e-5, /*cudnn_enabled=*/false)
            .sin();
  ((h * h).sum() + g.x.sum() * (mean + variance).sum()).backward();
}

const Scenario kScenarios[] = {
    {"EveryNumberInACustomFunction", every_number_in_a_custom_function},
    {"CustomFunction", custom_function},
    {"OverlappingViews", overlapping_views},
    {"Broadcast", broadcast},
    {"OneStorageAsSeveralTypes", one_storage_as_several_types},
    {"NumberThatIsNotTheDevices", number_that_is_not_the_devices},
    {"SparseAndQuantisedTensors", sparse_and_quantised_tensors},
    {"WithHoles", with_holes},
    {"ViewsOfParameters", views_of_parameters},
    {"TiedWeights", tied_weights},
    {"WrittenInPlace", written_in_place},
    {"BuffersOfBatchNorm", buffers_of_batch_norm},
};

}  // namespace

std::vector<Scenario> saved_tensor_scenarios() {
  return {std::begin(kScenarios), std::end(kScenarios)};
}

}  // namespace offprof
