#include <ATen/ATen.h>
#include <torch/csrc/autograd/custom_function.h>

#include <algorithm>
#include <tuple>
#include <vector>

#include "tests/properties/operations.h"

namespace offprof {

using at::Tensor;
using std::int64_t;

Tensor fitted(const Tensor& t, at::IntArrayRef sizes) {
  if (t.sizes() == sizes) return t;
  const int64_t wanted = c10::multiply_integers(sizes);
  Tensor flat = t.numel() == 0 ? at::ones({1}, t.options()) : t.reshape({t.numel()});
  if (flat.numel() < wanted) flat = flat.repeat({(wanted + flat.numel() - 1) / flat.numel()});
  return flat.narrow(0, 0, wanted).reshape(sizes);
}

Tensor total(const Tensor& t) {
  return t.sum();
}

namespace {

using torch::autograd::AutogradContext;
using torch::autograd::variable_list;

Tensor like(const Tensor& b, const Tensor& a) {
  return fitted(b, a.sizes());
}

Tensor with_dimension(const Tensor& a) {
  return a.dim() == 0 ? a.reshape({1}) : a;
}

Tensor matrix(const Tensor& a) {
  return a.dim() < 2 ? a.reshape({1, a.numel()}) : a.flatten(0, -2);
}

int64_t dimension(const Tensor& a, int64_t n) {
  return n % std::max<int64_t>(a.dim(), 1);
}

Tensor image(const Tensor& a, int64_t n) {
  const Tensor result = fitted(a, {1, 3, 4, 4});
  return n % 2 == 0 ? result : result.contiguous(at::MemoryFormat::ChannelsLast);
}

/// Returns 0, 1, ... below `end`, repeated.
Tensor indices(const Tensor& like, int64_t count, int64_t end) {
  return at::arange(count, at::TensorOptions(like.device()).dtype(at::kLong)).remainder(end);
}

// --- Elementwise operations on one or two tensors ---

Tensor added(const Tensor& a, const Tensor& b, int64_t n) {
  return a + like(b, a) * static_cast<double>(n % 3 - 1);
}
Tensor multiplied(const Tensor& a, const Tensor& b, int64_t) {
  return a * like(b, a);
}
Tensor divided(const Tensor& a, const Tensor& b, int64_t) {
  return a / (like(b, a).pow(2) + 1);
}
Tensor broadcast(const Tensor& a, const Tensor& b, int64_t) {
  const Tensor m = matrix(a), other = like(b, m);
  return m.mean(0, true) * other.mean(1, true) + m;
}
Tensor chosen(const Tensor& a, const Tensor& b, int64_t) {
  return at::where(a > 0, a, like(b, a));
}
Tensor filled_where(const Tensor& a, const Tensor& b, int64_t) {
  return a.masked_fill(like(b, a) > 0.5, 0);
}

/// Uses products and maxima only, which round the same in any layout.
template <at::ScalarType type>
Tensor in_type(const Tensor& a, const Tensor& b, int64_t) {
  return (a.to(type) * like(b, a).to(type)).relu().to(at::kDouble);
}
Tensor in_float32(const Tensor& a, const Tensor& b, int64_t) {
  return (a.to(at::kFloat).sin() * like(b, a).to(at::kFloat)).to(at::kDouble);
}
Tensor in_complex(const Tensor& a, const Tensor& b, int64_t) {
  const Tensor z = at::complex(a, like(b, a));
  return at::real(z * z.conj()) + at::imag(z * z);
}

// --- Matrices and layers ---

Tensor matrix_product(const Tensor& a, const Tensor& b, int64_t n) {
  const Tensor m = matrix(a);
  return m.mm(fitted(b, {m.size(1), 1 + n % 6})) * 0.25;
}
Tensor transposed_product(const Tensor& a, const Tensor& b, int64_t n) {
  const Tensor m = matrix(a);
  return m.t().mm(fitted(b, {m.size(0), 1 + n % 4})) * 0.25;
}
Tensor batched_product(const Tensor& a, const Tensor& b, int64_t n) {
  const Tensor m = matrix(a);
  return at::bmm(m.unsqueeze(0).expand({2, m.size(0), m.size(1)}), fitted(b, {2, m.size(1), 1 + n % 3}));
}
Tensor linear(const Tensor& a, const Tensor& b, int64_t n) {
  const Tensor m = matrix(a);
  return at::linear(m, fitted(b, {1 + n % 5, m.size(1)}), fitted(b, {1 + n % 5}));
}
Tensor convolution(const Tensor& a, const Tensor& b, int64_t n) {
  return at::conv2d(image(a, n), fitted(b, {2, 3, 2, 2}));
}
Tensor pooled(const Tensor& a, const Tensor&, int64_t n) {
  return at::max_pool2d(image(a, n), {2, 2});
}
Tensor batch_norm(const Tensor& a, const Tensor& b, int64_t n) {
  return at::batch_norm(image(a, n), fitted(b, {3}), {}, {}, {}, /*training=*/true, 0.1, 1e-5,
                        /*cudnn_enabled=*/false);
}
Tensor layer_norm(const Tensor& a, const Tensor& b, int64_t) {
  const Tensor m = matrix(a);
  return at::layer_norm(m, {m.size(1)}, fitted(b, {m.size(1)}));
}
Tensor attention(const Tensor& a, const Tensor& b, int64_t n) {
  const Tensor q = fitted(a, {1, 2, 3, 4}), k = fitted(b, {1, 2, 3, 4});
  return at::scaled_dot_product_attention(q, k, n % 2 == 0 ? k : q * k);
}
Tensor lstm_cell(const Tensor& a, const Tensor& b, int64_t) {
  const auto [hidden, cell] = at::lstm_cell(fitted(a, {2, 3}), {fitted(b, {2, 2}), fitted(a, {2, 2})},
                                            fitted(b, {8, 3}), fitted(a, {8, 2}));
  return hidden * cell;
}
Tensor cross_entropy(const Tensor& a, const Tensor&, int64_t) {
  const Tensor m = matrix(a);
  return at::cross_entropy_loss(m, indices(m, m.size(0), m.size(1)));
}
Tensor embedding(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor m = matrix(a);
  return at::embedding(m, indices(m, 1 + n % 7, m.size(0)));
}

/// Saves an input, an output, and a tensor that it created itself.
class CustomProduct final : public torch::autograd::Function<CustomProduct> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b) {
    const Tensor output = a.mul(b).tanh();
    context->save_for_backward({b, output, at::ones_like(output) * 3});
    return output;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    return {gradients[0] * (1 - saved[1] * saved[1]) * saved[0] * saved[2], Tensor()};
  }
};

Tensor custom_function(const Tensor& a, const Tensor& b, int64_t) {
  return CustomProduct::apply(a, like(b, a).detach());
}

/// Saves a tensor with eight bits per number, a tensor with one, and a sparse tensor whose values may be a
/// view.
class SavedInOtherForms final : public torch::autograd::Function<SavedInOtherForms> {
 public:
  static Tensor forward(AutogradContext* context, const Tensor& a, const Tensor& b) {
    const Tensor values = b.reshape({b.numel()});
    const Tensor indices = at::arange(b.numel(), at::TensorOptions(b.device()).dtype(at::kLong)).unsqueeze(0);
    context->save_for_backward({b.clamp(-8, 8).to(at::kFloat8_e4m3fn), b > 0,
                                at::_sparse_coo_tensor_unsafe(indices, values, {b.numel()})});
    return a * 1.5;
  }
  static variable_list backward(AutogradContext* context, const variable_list& gradients) {
    const variable_list saved = context->get_saved_variables();
    const Tensor values = saved[2]._values().reshape(gradients[0].sizes());
    const Tensor scaled = gradients[0] * saved[0].to(at::kDouble);
    return {at::where(saved[1], scaled, values), Tensor()};
  }
};

Tensor other_forms(const Tensor& a, const Tensor& b, int64_t) {
  return SavedInOtherForms::apply(a, like(b, a).detach());
}

// --- Indices and parts ---

Tensor gathered(const Tensor& a, const Tensor& b, int64_t) {
  const Tensor t = with_dimension(a);
  return t.gather(0, at::argsort(like(b, t), /*stable=*/true, 0, false));
}
Tensor index_selected(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a);
  const int64_t dim = dimension(t, n);
  return t.index_select(dim, indices(t, 1 + n % 5, t.size(dim)));
}
Tensor scattered(const Tensor& a, const Tensor& b, int64_t) {
  const Tensor t = with_dimension(a);
  return t.index_add(0, indices(t, t.size(0), std::max<int64_t>(t.size(0) / 2, 1)), like(b, t));
}
Tensor sorted(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a);
  return std::get<0>(t.sort(/*stable=*/true, dimension(t, n), /*descending=*/false));
}
Tensor joined(const Tensor& a, const Tensor& b, int64_t n) {
  const Tensor t = with_dimension(a);
  return at::cat({t, like(b, t)}, dimension(t, n));
}
Tensor stacked(const Tensor& a, const Tensor& b, int64_t n) {
  return at::stack({a, like(b, a)}, dimension(a, n));
}
Tensor one_chunk(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a);
  const std::vector<Tensor> pieces = t.chunk(3, dimension(t, n));
  return pieces[static_cast<std::size_t>(n) % pieces.size()];
}
/// Works as in an LSTM cell, on a tensor that nobody else has, because autograd does not notice that edits of
/// its pieces edit it.
Tensor unsafe_pieces(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a) * 1;
  std::vector<Tensor> pieces = t.unsafe_chunk(2, dimension(t, n));
  return pieces.front().sigmoid_() * pieces.front().sin();
}
Tensor unbound(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a);
  const std::vector<Tensor> pieces = t.unbind(dimension(t, n));
  return pieces.empty() ? t : pieces.front() * pieces.back();
}

// --- Reductions ---

Tensor summed(const Tensor& a, const Tensor&, int64_t n) {
  return a.sum(dimension(a, n), n % 2 == 0);
}
Tensor variance(const Tensor& a, const Tensor&, int64_t n) {
  if (a.numel() == 0) return a;
  return at::var(a, at::OptionalIntArrayRef(dimension(a, n)), /*correction=*/0, /*keepdim=*/true);
}

// --- Views ---

Tensor transposed(const Tensor& a, const Tensor&, int64_t n) {
  return a.dim() < 2 ? a : a.transpose(dimension(a, n), -1);
}
Tensor narrowed(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a);
  const int64_t dim = dimension(t, n), size = t.size(dim);
  return t.narrow(dim, size / 3, (size + 1) / 2);
}
Tensor nothing_of_it(const Tensor& a, const Tensor&, int64_t) {
  return with_dimension(a).narrow(0, 0, 0);
}
Tensor every_other(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a);
  return t.slice(dimension(t, n), n % 2, t.size(dimension(t, n)), 2);
}
Tensor selected(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a);
  return t.select(dimension(t, n), -1);
}
Tensor expanded(const Tensor& a, const Tensor&, int64_t n) {
  std::vector<int64_t> sizes = a.sizes().vec();
  sizes.insert(sizes.begin(), 2 + n % 2);
  return a.unsqueeze(0).expand(sizes);
}
Tensor flattened(const Tensor& a, const Tensor&, int64_t) {
  return a.reshape({a.numel()});
}
Tensor folded(const Tensor& a, const Tensor&, int64_t n) {
  const int64_t rows = 2 + n % 3;
  return a.numel() % rows == 0 ? a.reshape({rows, a.numel() / rows}) : a;
}
Tensor overlapping(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor flat = a.reshape({a.numel()});
  const int64_t columns = 2 + n % 3;
  return flat.size(0) < columns ? flat : flat.as_strided({flat.size(0) - columns + 1, columns}, {1, 1});
}
Tensor windows(const Tensor& a, const Tensor&, int64_t n) {
  const Tensor t = with_dimension(a);
  const int64_t dim = dimension(t, n);
  return t.unfold(dim, std::min<int64_t>(t.size(dim), 2), 1);
}
Tensor channels_last(const Tensor& a, const Tensor&, int64_t) {
  return image(a, 1);
}
Tensor diagonal(const Tensor& a, const Tensor&, int64_t) {
  return matrix(a).diagonal();
}

constexpr Operation kOperations[] = {
    {"add", 3, added},
    {"multiply", 5, multiplied},
    {"square", 3, [](const Tensor& a, const Tensor&, int64_t) { return a * a * 0.5; }},
    {"divide", 2, divided},
    {"power", 2, [](const Tensor& a, const Tensor&, int64_t n) { return a.pow(2 + n % 2); }},
    {"sin", 4, [](const Tensor& a, const Tensor&, int64_t) { return a.sin(); }},
    {"exp", 3, [](const Tensor& a, const Tensor&, int64_t) { return a.clamp(-3, 3).exp(); }},
    {"tanh", 4, [](const Tensor& a, const Tensor&, int64_t) { return a.tanh(); }},
    {"sigmoid", 3, [](const Tensor& a, const Tensor&, int64_t) { return a.sigmoid(); }},
    {"relu", 3, [](const Tensor& a, const Tensor&, int64_t) { return a.relu(); }},
    {"gelu", 2, [](const Tensor& a, const Tensor&, int64_t) { return at::gelu(a); }},
    {"scale", 2, [](const Tensor& a, const Tensor&, int64_t n) { return a * (0.5 * double(n % 5)); }},
    {"broadcast", 2, broadcast},
    {"where", 2, chosen},
    {"masked_fill", 2, filled_where},
    {"bfloat16", 2, in_type<at::kBFloat16>},
    {"float16", 2, in_type<at::kHalf>},
    {"float32", 2, in_float32},
    {"complex", 2, in_complex},
    {"mm", 6, matrix_product},
    {"mm_transposed", 4, transposed_product},
    {"bmm", 2, batched_product},
    {"linear", 3, linear},
    {"conv2d", 2, convolution},
    {"max_pool2d", 2, pooled},
    {"batch_norm", 2, batch_norm},
    {"layer_norm", 3, layer_norm},
    {"attention", 2, attention},
    {"lstm_cell", 2, lstm_cell},
    {"cross_entropy", 1, cross_entropy},
    {"embedding", 2, embedding},
    {"dropout", 3, [](const Tensor& a, const Tensor&, int64_t) { return at::dropout(a, 0.5, true); }},
    {"softmax", 3, [](const Tensor& a, const Tensor&, int64_t n) { return a.softmax(dimension(a, n)); }},
    {"log_softmax", 2,
     [](const Tensor& a, const Tensor&, int64_t n) { return a.log_softmax(dimension(a, n)); }},
    {"custom_function", 3, custom_function},
    {"other_forms", 3, other_forms},
    {"gather", 2, gathered},
    {"index_select", 2, index_selected},
    {"index_add", 2, scattered},
    {"sort", 2, sorted},
    {"cumsum", 1, [](const Tensor& a, const Tensor&, int64_t n) { return a.cumsum(dimension(a, n)); }},
    {"cat", 3, joined},
    {"stack", 2, stacked},
    {"chunk", 3, one_chunk},
    {"unsafe_chunk", 1, unsafe_pieces},
    {"unbind", 2, unbound},
    {"flip", 1, [](const Tensor& a, const Tensor&, int64_t) { return with_dimension(a).flip(0); }},
    {"sum", 1, summed},
    {"mean", 1,
     [](const Tensor& a, const Tensor&, int64_t n) { return a.mean(dimension(a, n), n % 2 == 0); }},
    {"amax", 1, [](const Tensor& a, const Tensor&, int64_t n) { return a.amax(dimension(a, n), true); }},
    {"logsumexp", 1, [](const Tensor& a, const Tensor&, int64_t n) { return a.logsumexp(dimension(a, n)); }},
    {"var", 1, variance},
    {"transpose", 4, transposed},
    {"narrow", 3, narrowed},
    {"nothing_of_it", 1, nothing_of_it},
    {"every_other", 3, every_other},
    {"select", 2, selected},
    {"expand", 3, expanded},
    {"flatten", 2, flattened},
    {"fold", 3, folded},
    {"overlap", 3, overlapping},
    {"windows", 2, windows},
    {"channels_last", 2, channels_last},
    {"diagonal", 1, diagonal},
    {"clone", 1, [](const Tensor& a, const Tensor&, int64_t) { return a.clone(); }},
    {"detach", 2, [](const Tensor& a, const Tensor&, int64_t) { return a.detach(); }},
};

}  // namespace

std::span<const Operation> tensor_operations() {
  return kOperations;
}

}  // namespace offprof
