#include "engine/devices/virtual_gpu/model/op_work.h"

#include <algorithm>
#include <cstddef>
#include <functional>
#include <map>
#include <numeric>
#include <optional>

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

/// Returns the count for a product of the operands `left` [.., m, k] and `left + 1` [.., k, n], which may be
/// batched.
Flops product(std::size_t left) {
  return [left](const OpCall& op, Bytes) -> std::optional<double> {
    if (op.operands.size() < left + 2) return std::nullopt;
    const Sizes& a = op.operands[left].sizes;
    const Sizes& b = op.operands[left + 1].sizes;
    if (a.size() < 2 || b.empty()) return std::nullopt;
    return kMultiplyAdd * elements(a) * (b.size() < 2 ? 1.0 : static_cast<double>(b.back()));
  };
}

/// Counts the product of x [.., k] and the transpose of a weight [n, k].
std::optional<double> linear_flops(const OpCall& op, Bytes) {
  if (op.operands.size() < 2 || op.operands[1].sizes.empty()) return std::nullopt;
  return kMultiplyAdd * elements(op.operands[0].sizes) * static_cast<double>(op.operands[1].sizes.front());
}

/// Returns the elements of one filter of a weight [outputs, inputs / groups, kernel..], or transposed
/// [inputs, outputs / groups, kernel..].
double filter_elements(const OperandShape& weight) {
  return elements({weight.sizes.begin() + 1, weight.sizes.end()});
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
  if (allocated > 0 && inputs > 0) {
    outputs = static_cast<double>(allocated) * inputs / static_cast<double>(input.bytes);
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
  constexpr double kGradients = 2;
  if (!is_image_and_weight(op, 1)) return std::nullopt;
  const OperandShape& gradient = op.operands[0];
  const OperandShape& weight = op.operands[2];
  if (gradient.sizes.size() < 2) return std::nullopt;
  const bool transposed = gradient.sizes[1] != weight.sizes[0];
  const OperandShape& met_by_filters = transposed ? op.operands[1] : gradient;
  return kGradients * kMultiplyAdd * elements(met_by_filters.sizes) * filter_elements(weight);
}

/// Dimension of a query, key or value that counts the positions of its sequence.
enum class Layout : std::size_t { kPlacesHeads = 1, kHeadsPlaces = 2 };

/// Counts attention. `query` is the index of the query operand; key and value follow it. `over_key` and
/// `over_value` are the numbers of products whose inner or outer width is that of a key or of a value.
Flops attention(std::size_t query, Layout layout, double over_key, double over_value) {
  return [=](const OpCall& op, Bytes) -> std::optional<double> {
    constexpr std::size_t kDimensions = 4;  // batch, heads and positions in either order, width
    if (op.operands.size() < query + 3) return std::nullopt;
    for (std::size_t i = query; i < query + 3; ++i)
      if (op.operands[i].sizes.size() != kDimensions || op.operands[i].sizes.back() == 0) return std::nullopt;
    const Sizes& q = op.operands[query].sizes;
    const double rows = elements(q) / static_cast<double>(q.back());
    const auto columns = static_cast<double>(op.operands[query + 1].sizes[static_cast<std::size_t>(layout)]);
    const auto key_width = static_cast<double>(q.back());
    const auto value_width = static_cast<double>(op.operands[query + 2].sizes.back());
    return kMultiplyAdd * rows * columns * (over_key * key_width + over_value * value_width);
  };
}

/// Operation count of an operator, and if it may use tf32.
struct Arithmetic {
  Flops flops;
  bool allows_tf32 = false;
};

using Table = std::map<std::string_view, Arithmetic, std::less<>>;

void add_products(Table& table) {
  table["aten::mm"] = table["aten::bmm"] = table["aten::mv"] = {product(0)};
  table["aten::addmm"] = table["aten::_addmm_activation"] = {product(1)};
  table["aten::baddbmm"] = table["aten::addmv"] = {product(1)};
  for (const char* in_place : {"aten::addmm_", "aten::baddbmm_", "aten::addmv_"})
    table[in_place] = {product(1)};
  table["aten::linear"] = {linear_flops};
}

void add_convolutions(Table& table) {
  for (const char* name :
       {"aten::convolution", "aten::_convolution", "aten::cudnn_convolution", "aten::cudnn_convolution_relu",
        "aten::cudnn_convolution_add_relu", "aten::_conv_depthwise2d", "aten::conv_depthwise3d",
        "aten::_slow_conv2d_forward", "aten::slow_conv_dilated2d", "aten::slow_conv3d_forward"})
    table[name] = {convolution_flops, true};
  table["aten::cudnn_convolution_transpose"] = {transposed_convolution_flops, true};
  table["aten::convolution_backward"] = {convolution_backward_flops, true};
}

/// Adds the attention operators. Forward is two products: the scores, and the sum of values weighted by them.
/// Backward computes the scores again and four gradients: those of scores and values, with the width of a
/// value, and those of queries and keys.
void add_attention(Table& table) {
  for (const std::string_view name :
       {"aten::_scaled_dot_product_flash_attention", "aten::_scaled_dot_product_efficient_attention",
        "aten::_scaled_dot_product_cudnn_attention"})
    table[name] = {attention(0, Layout::kHeadsPlaces, 1, 1)};
  for (const std::string_view name : {"aten::_scaled_dot_product_flash_attention_backward",
                                      "aten::_scaled_dot_product_efficient_attention_backward",
                                      "aten::_scaled_dot_product_cudnn_attention_backward"})
    table[name] = {attention(1, Layout::kHeadsPlaces, 3, 2)};
  for (const std::string_view name : {"aten::_flash_attention_forward", "aten::_efficient_attention_forward"})
    table[name] = {attention(0, Layout::kPlacesHeads, 1, 1)};
  for (const std::string_view name :
       {"aten::_flash_attention_backward", "aten::_efficient_attention_backward"})
    table[name] = {attention(1, Layout::kPlacesHeads, 3, 2)};
}

const Table& arithmetic() {
  static const Table table = [] {
    Table built;
    add_products(built);
    add_convolutions(built);
    add_attention(built);
    return built;
  }();
  return table;
}

bool is_one_of(std::string_view name, std::initializer_list<std::string_view> names) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Returns true if the operator reads only some rows of its first operand, no more bytes than it returns.
bool is_gathering(std::string_view name) {
  return is_one_of(name, {"aten::embedding", "aten::index_select", "aten::gather", "aten::index",
                          "aten::take", "aten::nll_loss_forward"});
}

/// Returns true if the operator overwrites its first operand without reading it.
bool is_overwriting(std::string_view name) {
  return is_one_of(
      name, {"aten::copy_", "aten::fill_", "aten::zero_", "aten::normal_", "aten::uniform_", "aten::random_",
             "aten::bernoulli_", "aten::_foreach_copy_", "aten::_foreach_zero_"});
}

/// Returns the number of tensor lists, all of the same shapes, that an operator on lists was called with: the
/// first of `counts` that fits.
std::size_t lists_of(const OpCall& op, std::initializer_list<std::size_t> counts) {
  for (const std::size_t lists : counts) {
    const std::size_t length = op.operands.size() / lists;
    if (length == 0 || op.operands.size() % lists != 0) continue;
    const bool repeats = std::equal(
        op.operands.begin() + static_cast<std::ptrdiff_t>(length), op.operands.end(), op.operands.begin(),
        [](const OperandShape& a, const OperandShape& b) { return a.sizes == b.sizes; });
    if (repeats) return lists;
  }
  return 1;
}

/// Returns the bytes that a fused optimizer writes. It takes lists of parameters, gradients and state, and
/// perhaps one of step counts, and writes all but the gradients.
Bytes written_by_fused(const OpCall& op) {
  OpCall large = op;
  std::erase_if(large.operands, [](const OperandShape& operand) { return operand.sizes.empty(); });
  const auto lists = static_cast<Bytes>(lists_of(large, {5, 4, 3, 2}));
  const Bytes bytes = operand_bytes(large);
  return lists == 1 ? bytes : bytes / lists * (lists - 1);
}

Bytes written_in_place(const OpCall& op) {
  if (!op.name.ends_with('_') || op.operands.empty() || is_overwriting(op.name)) return 0;
  if (op.name.starts_with("aten::_fused_")) return written_by_fused(op);
  if (op.name.starts_with("aten::_foreach_addc"))
    return operand_bytes(op) / static_cast<Bytes>(lists_of(op, {3}));
  if (op.name.starts_with("aten::_foreach_"))
    return operand_bytes(op) / static_cast<Bytes>(lists_of(op, {2}));
  return op.operands.front().bytes;
}

Bytes traffic_of(const OpCall& op, Bytes allocated) {
  if (is_gathering(op.name) && !op.operands.empty()) return operand_bytes(op, 1) + 2 * allocated;
  return operand_bytes(op) + allocated + written_in_place(op);
}

}  // namespace

OpWork work_of(const OpCall& op, Bytes allocated) {
  OpWork work{.bytes = traffic_of(op, allocated)};
  if (!op.operands.empty()) work.dtype = op.operands.front().dtype;
  const auto found = arithmetic().find(op.name);
  if (found == arithmetic().end()) return work;
  const std::optional<double> flops = found->second.flops(op, allocated);
  if (!flops) return work;
  work.flops = *flops;
  work.tensor_cores = true;
  if (found->second.allows_tf32 && work.dtype == "float32") work.dtype = "tf32";
  return work;
}

}  // namespace offprof
