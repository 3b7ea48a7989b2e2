#pragma once

#include <ATen/ATen.h>

#include <ostream>
#include <tuple>
#include <vector>

namespace offprof {

using at::Tensor;

/// Leaves of a test graph: two tensors of 48 numbers, and tensors that must stay alive until backward is
/// done.
struct Graph {
  explicit Graph(c10::Device device = at::kCPU)
      : x(at::randn({6, 8}, at::TensorOptions(device).dtype(at::kDouble)).set_requires_grad(true)),
        w(at::randn({8, 6}, at::TensorOptions(device).dtype(at::kDouble)).set_requires_grad(true)) {}

  Tensor x, w;
  std::vector<Tensor> alive;
};

/// A small graph that saves tensors of one kind. `loss` returns the scalar that backward starts from.
struct GraphCase {
  const char* name;
  Tensor (*loss)(Graph&);

  friend std::ostream& operator<<(std::ostream& out, const GraphCase& graph) { return out << graph.name; }
};

namespace graphs {

inline Tensor image(const Tensor& x) {
  return (x * 2).reshape({1, 3, 4, 4}).contiguous(at::MemoryFormat::ChannelsLast);
}

inline Tensor chain(Graph& g) {
  return g.x.exp().mm(g.w).tanh().sin().sum();
}

inline Tensor views(Graph& g) {
  const Tensor h = g.x * 2;
  return h.view({-1}).pow(2).sum() + h.view({3, 16}).exp().sum();
}

inline Tensor transposed(Graph& g) {
  return (g.x * 2).t().mm((g.w * 3).t()).sin().sum();
}

inline Tensor expanded(Graph& g) {
  const Tensor e = g.x.mean(1, true).expand({6, 8});
  return (e * g.x * e.pow(2)).sum();
}

inline Tensor channels_last(Graph& g) {
  const Tensor kernel = image(g.w.t()).reshape({4, 3, 2, 2}).exp();
  return at::conv2d(image(g.x), kernel).pow(2).sum();
}

inline Tensor slices(Graph& g) {
  const Tensor h = g.x * 2;
  return (h.slice(1, 1, 8, 2).pow(2).sum() * h.select(0, 2).sin()).sum();
}

inline Tensor one_storage_many_times(Graph& g) {
  const Tensor h = g.x.exp();
  return (h * h * h.view({8, 6}).t().reshape({6, 8}) + h.sin() * h.cos()).sum();
}

/// Saves the same storage in two versions, each with a reader of its own.
inline Tensor two_versions(Graph& g) {
  Tensor h = g.x * 2;
  g.alive.push_back(h.pow(2));  // saves the version that exp_ overwrites; backward never needs it
  h.exp_();
  return (h * h).sum();
}

inline Tensor outputs(Graph& g) {
  return (g.x.mm(g.w).relu().softmax(1).tanh().sigmoid() * g.w.narrow(0, 0, 6)).sum();
}

inline Tensor outputs_in_place(Graph& g) {
  return g.x.mm(g.w).relu_().mm((g.x * 2).sigmoid_()).pow(2).sum();
}

/// The gates share a storage and are activated in place, each with its own version counter.
inline Tensor lstm_cell(Graph& g) {
  Tensor hidden = g.x.narrow(1, 0, 2) * 1, cell = g.x.narrow(1, 2, 2) * 1;
  const Tensor input_weight = g.w.t().reshape({8, 6}), hidden_weight = g.w.reshape({24, 2}).narrow(0, 0, 8);
  for (int step = 0; step < 3; ++step)
    std::tie(hidden, cell) =
        at::lstm_cell(g.x.narrow(1, 0, 6) * step, {hidden, cell}, input_weight, hidden_weight);
  return (hidden * cell).sum();
}

inline Tensor shared_subgraph(Graph& g) {
  const Tensor h = g.x.mm(g.w).tanh();
  return (h.exp() + h.sin().mm(h)).sum() * h.mean();
}

inline Tensor never_unpacked(Graph& g) {
  g.alive.push_back(g.x.exp().sin().mm(g.w));
  return g.w.exp().pow(2).sum();
}

/// Uses integers, so that no kernel rounds: the layout decides which kernel runs.
inline Tensor complex_numbers(Graph& g) {
  const Tensor whole = g.x + (g.x.round() - g.x).detach();
  const Tensor z = at::complex(whole * 2, whole.flip(1));
  const Tensor product = z.conj().slice(1, 0, 8, 2) * z.slice(1, 1, 8, 2);
  return at::real(product * product.conj()).sum() + at::imag(z * z).slice(1, 0, 8, 3).pow(2).sum();
}

inline Tensor bool_mask(Graph& g) {
  const Tensor h = g.x * 2;
  return at::where(h > 0, h.exp(), h.pow(2)).masked_fill(h > 1, 0).sum();
}

inline Tensor int64_indices(Graph& g) {
  const Tensor h = g.x * 2;
  return (h.gather(1, at::argsort(h, /*stable=*/true, 1, false)) * h).cumsum(0).sum();
}

inline Tensor bfloat16(Graph& g) {
  return (g.x * 2).to(at::kBFloat16).mm(g.w.to(at::kBFloat16)).exp().to(at::kDouble).sum();
}

inline Tensor no_elements(Graph& g) {
  const Tensor h = g.x * 2;
  return h.narrow(0, 0, 0).exp().pow(3).sum() + h.exp().sum();
}

/// An empty view of a storage that has bytes: by TRL's rules its copy has none.
inline Tensor view_of_no_elements(Graph& g) {
  const Tensor h = g.x * 2;
  const Tensor none = h.narrow(1, 3, 0);
  return (none * h.narrow(1, 5, 0)).sum() + none.sin().sum() + h.sin().exp().sum();
}

inline Tensor no_dimensions(Graph& g) {
  const Tensor s = g.x.sum();
  return s.sin() * s.cos().exp();
}

inline Tensor sparse(Graph& g) {
  return at::_sparse_mm((g.x * 2).relu().to_sparse(), g.w * 3).pow(2).sum();
}

inline Tensor dropout(Graph& g) {
  return at::dropout((g.x * 2).exp(), 0.5, true).pow(2).sum();
}

inline Tensor attention(Graph& g) {
  const Tensor q = (g.x * 2).view({1, 2, 3, 8}), k = g.w.exp().view({1, 2, 3, 8});
  return at::scaled_dot_product_attention(q, k, q * k).pow(2).sum();
}

inline Tensor norm_and_pool(Graph& g) {
  const Tensor h = at::batch_norm(image(g.x), {}, {}, {}, {}, true, 0.1, 1e-5, false);
  return at::max_pool2d(h, {2, 2}).pow(2).sum();
}

inline Tensor classifier(Graph& g) {
  const Tensor h = at::gelu(at::layer_norm(g.x * 2, {8}));
  const Tensor target = at::arange(6, g.x.options().dtype(at::kLong).requires_grad(false));
  return at::cross_entropy_loss(h.mm(g.w), target) + at::embedding(g.w * 2, target).pow(3).sum();
}

inline Tensor pieces(Graph& g) {
  const std::vector<Tensor> parts = (g.x * 2).chunk(4, 1);
  const Tensor joined = at::cat({parts[3].exp(), parts[0] * parts[1]}, 1);
  return (at::stack({joined, joined.flip(1)}, 2).unbind(2)[1] * parts[2].select(1, 1).unsqueeze(1)).sum();
}

}  // namespace graphs

inline constexpr GraphCase kGraphCases[] = {
    {"Chain", graphs::chain},
    {"Views", graphs::views},
    {"Transposed", graphs::transposed},
    {"Expanded", graphs::expanded},
    {"ChannelsLast", graphs::channels_last},
    {"Slices", graphs::slices},
    {"OneStorageManyTimes", graphs::one_storage_many_times},
    {"TwoVersions", graphs::two_versions},
    {"Outputs", graphs::outputs},
    {"OutputsInPlace", graphs::outputs_in_place},
    {"LstmCell", graphs::lstm_cell},
    {"SharedSubgraph", graphs::shared_subgraph},
    {"NeverUnpacked", graphs::never_unpacked},
    {"ComplexNumbers", graphs::complex_numbers},
    {"BoolMask", graphs::bool_mask},
    {"Int64Indices", graphs::int64_indices},
    {"BFloat16", graphs::bfloat16},
    {"NoElements", graphs::no_elements},
    {"ViewOfNoElements", graphs::view_of_no_elements},
    {"NoDimensions", graphs::no_dimensions},
    {"Sparse", graphs::sparse},
    {"Dropout", graphs::dropout},
    {"Attention", graphs::attention},
    {"NormAndPool", graphs::norm_and_pool},
    {"Classifier", graphs::classifier},
    {"Pieces", graphs::pieces},
};

}  // namespace offprof
