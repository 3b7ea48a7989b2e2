#include "engine/devices/virtual_gpu/work/op_work.h"

#include <algorithm>
#include <cmath>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

#include "engine/devices/virtual_gpu/work/convolution_shape.h"

namespace offprof {
namespace {

using Sizes = std::vector<std::int64_t>;

constexpr double kMultiplyAdd = 2;  ///< operations

double elements(const Sizes& sizes) {
  return std::accumulate(sizes.begin(), sizes.end(), 1.0, [](double product, std::int64_t size) {
    return product * static_cast<double>(size);
  });
}

Bytes operand_bytes(const OpCall& op, std::size_t first = 0) {
  Bytes bytes = 0;
  for (std::size_t i = first; i < op.operands.size(); ++i) bytes += op.operands[i].bytes;
  return bytes;
}

/// Returns the operations of an operator call; nullopt if its operands do not fit the operator.
using Flops = std::function<std::optional<double>(const OpCall& op, Bytes allocated)>;

using Shape = std::function<std::optional<ProductShape>(const OpCall& op)>;

/// Returns by how many elements, at most 8, the rows of a matrix are aligned, or its columns if it is
/// transposed. Rows of one element are none.
std::int64_t aligned_elements(const OperandShape& matrix) {
  constexpr std::int64_t kMost = ProductShape{}.aligned_elements;
  if (matrix.sizes.size() < 2 || matrix.sizes.back() <= 1) return kMost;
  return std::gcd(kMost,
                  matrix.is_transposed() ? matrix.step_bytes / matrix.element_bytes : matrix.sizes.back());
}

/// Returns the same of a product of two matrices with so many columns in its result.
std::int64_t aligned_elements(const OperandShape& a, const OperandShape& b, std::int64_t columns) {
  const std::int64_t of_operands = std::gcd(aligned_elements(a), aligned_elements(b));
  return columns <= 1 ? of_operands : std::gcd(of_operands, columns);
}

/// Returns the shape of a product of the operands `left` [.., m, k] and `left + 1` [.., k, n], which may be
/// batched.
Shape product(std::size_t left) {
  return [left](const OpCall& op) -> std::optional<ProductShape> {
    if (op.operands.size() < left + 2) return std::nullopt;
    const Sizes& a = op.operands[left].sizes;
    const Sizes& b = op.operands[left + 1].sizes;
    if (a.size() < 2 || b.empty()) return std::nullopt;
    return ProductShape{.rows = static_cast<double>(a[a.size() - 2]),
                        .columns = b.size() < 2 ? 1.0 : static_cast<double>(b.back()),
                        .inner = static_cast<double>(a.back()),
                        .batch = elements({a.begin(), a.end() - 2}),
                        .aligned_elements = aligned_elements(op.operands[left], op.operands[left + 1],
                                                             b.size() < 2 ? 1 : b.back()),
                        .sums_apart = b.size() > 1 && op.operands[left].is_transposed() &&
                                      !op.operands[left + 1].is_transposed()};
  };
}

/// Returns the shape of the product of x [.., k] and the transpose of a weight [n, k].
std::optional<ProductShape> linear_product(const OpCall& op) {
  if (op.operands.size() < 2 || op.operands[1].sizes.empty() || op.operands[0].sizes.empty())
    return std::nullopt;
  const Sizes& x = op.operands[0].sizes;
  return ProductShape{
      .rows = elements({x.begin(), x.end() - 1}),
      .columns = static_cast<double>(op.operands[1].sizes.front()),
      .inner = static_cast<double>(x.back()),
      .aligned_elements = aligned_elements(op.operands[0], op.operands[1], op.operands[1].sizes.front())};
}

bool is_image_and_weight(const OpCall& op, std::size_t image) {
  constexpr std::size_t kLeastDimensions = 3;  // batch, channels, one of space
  return op.operands.size() >= image + 2 && op.operands[image].sizes.size() >= kLeastDimensions &&
         op.operands[image + 1].sizes.size() == op.operands[image].sizes.size();
}

/// Counts a convolution of (input, weight, ..). The allocated bytes are the output; if there are none, the
/// output counts as wide and high as the input.
std::optional<double> convolution_flops(const OpCall& op, Bytes allocated) {
  if (!is_image_and_weight(op, 0)) return std::nullopt;
  const OperandShape& input = op.operands[0];
  const OperandShape& weight = op.operands[1];
  const double inputs = elements(input.sizes);
  double outputs = inputs / static_cast<double>(input.sizes[1]) * static_cast<double>(weight.sizes[0]);
  if (const double filters = elements(weight.sizes); allocated > 0 && filters > 0) {
    const double element_bytes = static_cast<double>(weight.bytes) / filters;
    outputs = static_cast<double>(allocated) / element_bytes;
  }
  return kMultiplyAdd * outputs * filter_elements(weight);
}

/// Counts (input, weight, ..): each input element is multiplied with each element of a filter.
std::optional<double> transposed_convolution_flops(const OpCall& op, Bytes) {
  if (!is_image_and_weight(op, 0)) return std::nullopt;
  return kMultiplyAdd * elements(op.operands[0].sizes) * filter_elements(op.operands[1]);
}

/// Counts (gradient of the output, input, weight, ..): the gradients of input and weight each take as much as
/// forward.
std::optional<double> convolution_backward_flops(const OpCall& op, Bytes) {
  if (!is_image_and_weight(op, 1)) return std::nullopt;
  const OperandShape& gradient = op.operands[0];
  const OperandShape& weight = op.operands[2];
  if (gradient.sizes.size() < 2) return std::nullopt;
  const bool transposed = gradient.sizes[1] != weight.sizes[0];
  const OperandShape& met_by_filters = transposed ? op.operands[1] : gradient;
  return op.gradients * kMultiplyAdd * elements(met_by_filters.sizes) * filter_elements(weight);
}

/// Dimension of a query, key or value that counts the positions of its sequence.
enum class Layout : std::size_t { kPlacesHeads = 1, kHeadsPlaces = 2 };

/// Attention of the operands from `query` on: query, key, value. `over_key` and `over_value` are the numbers
/// of products whose inner or outer width is that of a key or of a value.
struct Attention {
  std::size_t query = 0;
  Layout layout = Layout::kHeadsPlaces;
  double over_key = 1, over_value = 1;
};

constexpr std::size_t kAttentionDimensions = 4;  // batch, heads and positions in either order, width

bool is_attention(const OpCall& op, std::size_t query) {
  if (op.operands.size() < query + 3) return false;
  return std::all_of(op.operands.begin() + static_cast<std::ptrdiff_t>(query),
                     op.operands.begin() + static_cast<std::ptrdiff_t>(query) + 3, [](const auto& operand) {
                       return operand.sizes.size() == kAttentionDimensions && operand.sizes.back() != 0;
                     });
}

/// Counts attention, and describes it in `work`.
void count_attention(const Attention& attention, const OpCall& op, OpWork& work) {
  constexpr double kBelowDiagonal = 0.5;
  if (!is_attention(op, attention.query)) return;
  const Sizes& q = op.operands[attention.query].sizes;
  const double rows = elements(q) / static_cast<double>(q.back());
  const auto columns =
      static_cast<double>(op.operands[attention.query + 1].sizes[static_cast<std::size_t>(attention.layout)]);
  const auto key_width = static_cast<double>(q.back());
  const auto value_width = static_cast<double>(op.operands[attention.query + 2].sizes.back());
  work.flops = kMultiplyAdd * rows * columns *
               (attention.over_key * key_width + attention.over_value * value_width) *
               (op.is_causal ? kBelowDiagonal : 1);
  work.tensor_cores = true;
  work.attention = {.queries = static_cast<double>(q[static_cast<std::size_t>(attention.layout)]),
                    .positions = columns,
                    .width = key_width,
                    .is_causal = op.is_causal,
                    .is_backward = attention.query > 0,
                    .has_mask = op.has_mask,
                    .is_cudnn = op.name.find("cudnn") != std::string_view::npos};
  if (!work.attention->is_cudnn || !work.attention->is_backward) return;
  constexpr Bytes kOf16Bits = 3, kOfFloat32 = 2;  // gradient and result in, gradient out; sums out and in
  constexpr Bytes kHalf = 2, kSingle = 4;
  work.attention->beside_backward_bytes =
      static_cast<Bytes>(elements(q)) * (kOf16Bits * kHalf + kOfFloat32 * kSingle);
}

const std::map<std::string_view, Shape, std::less<>>& products() {
  static const std::map<std::string_view, Shape, std::less<>> table = {
      {"aten::mm", product(0)},
      {"aten::bmm", product(0)},
      {"aten::mv", product(0)},
      {"aten::addmm", product(1)},
      {"aten::baddbmm", product(1)},
      {"aten::addmv", product(1)},
      {"aten::addmm_", product(1)},
      {"aten::baddbmm_", product(1)},
      {"aten::addmv_", product(1)},
      {"aten::linear", linear_product},
      {"aten::_addmm_activation", product(1)}};
  return table;
}

const std::map<std::string_view, Flops, std::less<>>& convolutions() {
  static const std::map<std::string_view, Flops, std::less<>> table = {
      {"aten::convolution", convolution_flops},
      {"aten::_convolution", convolution_flops},
      {"aten::cudnn_convolution", convolution_flops},
      {"aten::cudnn_convolution_relu", convolution_flops},
      {"aten::cudnn_convolution_add_relu", convolution_flops},
      {"aten::_conv_depthwise2d", convolution_flops},
      {"aten::conv_depthwise3d", convolution_flops},
      {"aten::_slow_conv2d_forward", convolution_flops},
      {"aten::slow_conv_dilated2d", convolution_flops},
      {"aten::slow_conv3d_forward", convolution_flops},
      {"aten::cudnn_convolution_transpose", transposed_convolution_flops},
      {"aten::convolution_backward", convolution_backward_flops}};
  return table;
}

/// Attention operators. Forward is two products: the scores, and the sum of values weighted by them. Backward
/// computes the scores again and four gradients: those of scores and values, with the width of a value, and
/// those of queries and keys.
const std::map<std::string_view, Attention, std::less<>>& attentions() {
  constexpr Attention kForward{0, Layout::kHeadsPlaces, 1, 1}, kBackward{1, Layout::kHeadsPlaces, 3, 2};
  constexpr Attention kPlacesForward{0, Layout::kPlacesHeads, 1, 1};
  constexpr Attention kPlacesBackward{1, Layout::kPlacesHeads, 3, 2};
  static const std::map<std::string_view, Attention, std::less<>> table = {
      {"aten::_scaled_dot_product_flash_attention", kForward},
      {"aten::_scaled_dot_product_efficient_attention", kForward},
      {"aten::_scaled_dot_product_cudnn_attention", kForward},
      {"aten::_scaled_dot_product_flash_attention_backward", kBackward},
      {"aten::_scaled_dot_product_efficient_attention_backward", kBackward},
      {"aten::_scaled_dot_product_cudnn_attention_backward", kBackward},
      {"aten::_cudnn_attention_forward", kForward},
      {"aten::_cudnn_attention_backward", kBackward},
      {"aten::_flash_attention_forward", kPlacesForward},
      {"aten::_efficient_attention_forward", kPlacesForward},
      {"aten::_flash_attention_backward", kPlacesBackward},
      {"aten::_efficient_attention_backward", kPlacesBackward}};
  return table;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns the bytes of the first list of an operator on lists, or of the `skipped + 1`-th one.
Bytes list_bytes(const OpCall& op, std::size_t skipped = 0) {
  const std::size_t first = skipped * op.list_length;
  Bytes bytes = 0;
  for (std::size_t i = first; i < std::min(first + op.list_length, op.operands.size()); ++i)
    bytes += op.operands[i].bytes;
  return bytes;
}

/// Fused optimizers take lists of parameters, gradients and states, and write all but the gradients.
Bytes written_in_place(const OpCall& op) {
  if (!op.name.ends_with('_') || op.operands.empty() || is_overwriting(op.name)) return 0;
  if (op.name.starts_with("aten::_fused_")) return operand_bytes(op) - list_bytes(op, 1);
  return op.name.find("_foreach_") != std::string_view::npos ? list_bytes(op) : op.operands.front().bytes;
}

/// Returns the bytes of the gradient of an embedding's weight: the gradient of the output is read, sums of
/// parts of it are written and read, and rows are written (EmbeddingBackwardKernel.cuh). The fill of the
/// gradient with zeros is an operator of its own.
Bytes embedding_backward_bytes(const OpCall& op) {
  constexpr Bytes kPasses = 4;
  return kPasses * op.operands.front().bytes + operand_bytes(op, 1);
}

/// Returns the bytes of the indices, the rows that are read and the result. An operator that allocates none
/// writes to its last operand: that is how `index_select` calls `gather`, with one index for each row.
Bytes gathered_bytes(const OpCall& op, Bytes allocated) {
  return allocated > 0 ? operand_bytes(op, 1) + 2 * allocated : 2 * op.operands.back().bytes;
}

Bytes traffic_of(const OpCall& op, Bytes allocated) {
  if (op.name == "aten::embedding_dense_backward" && !op.operands.empty())
    return embedding_backward_bytes(op);
  if (gathers(op.name) && !op.operands.empty()) return gathered_bytes(op, allocated);
  return operand_bytes(op) + allocated + written_in_place(op);
}

void count_product(const ProductShape& shape, OpWork& work) {
  work.product = shape;
  work.flops = kMultiplyAdd * shape.rows * shape.columns * shape.inner * shape.batch;
  work.tensor_cores = true;
}

void count_convolution(const OpCall& op, double flops, OpWork& work) {
  work.flops = flops;
  work.tensor_cores = true;
  work.convolution = convolution_shape(op, flops);
  if (op.name.ends_with("_backward") && op.gradients > 1) work.bytes += op.operands.front().bytes;
  if (work.convolution) work.bytes -= work.convolution->skipped_bytes;
}

}  // namespace

double filter_elements(const OperandShape& weight) {
  if (weight.sizes.empty()) return 0;
  return elements({weight.sizes.begin() + 1, weight.sizes.end()});
}

bool is_overwriting(std::string_view name) {
  return is_one_of(
      name, {"aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::random_",
             "aten::bernoulli_", "aten::_foreach_copy_", "aten::_foreach_zero_"});
}

bool gathers(std::string_view name) {
  return is_one_of(name, {"aten::embedding", "aten::index_select", "aten::gather", "aten::index",
                          "aten::take", "aten::nll_loss_forward"});
}

OpKind kind_of(std::string_view name) {
  if (products().contains(name)) return OpKind::kProduct;
  if (convolutions().contains(name)) return OpKind::kConvolution;
  return attentions().contains(name) ? OpKind::kAttention : OpKind::kMovesMemory;
}

OpWork work_of(const OpCall& op, Bytes allocated) {
  OpWork work{.bytes = traffic_of(op, allocated)};
  if (!op.operands.empty()) work.dtype = op.operands.front().dtype;
  if (op.uses_tf32 && work.dtype == "float32") work.dtype = "tf32";
  if (const auto found = products().find(op.name); found != products().end()) {
    if (const auto shape = found->second(op)) count_product(*shape, work);
  } else if (const auto conv = convolutions().find(op.name); conv != convolutions().end()) {
    if (const auto flops = conv->second(op, allocated)) count_convolution(op, *flops, work);
  } else if (const auto attention = attentions().find(op.name); attention != attentions().end()) {
    count_attention(attention->second, op, work);
  }
  return work;
}

}  // namespace offprof
