#include "engine/devices/virtual_gpu/work/convolution_shape.h"

#include <algorithm>
#include <cmath>

namespace offprof {

std::optional<ConvolutionShape> convolution_shape(const OpCall& op, double flops) {
  constexpr double kBlockChannels = 64, kOperandsOfProduct = 2;  // images and results; filters are small
  const bool is_backward = op.name.ends_with("_backward");
  const std::size_t image = is_backward ? 1 : 0;
  const OperandShape &input = op.operands[image], &weight = op.operands[image + 1];
  const double inner = filter_elements(weight), filters = static_cast<double>(weight.sizes[0]);
  const auto channels = static_cast<double>(weight.sizes[1]), all = static_cast<double>(input.sizes[1]);
  const bool is_transposed =
      op.name.ends_with("_transpose") || (is_backward && op.operands.front().sizes[1] != weight.sizes[0]);
  if (is_transposed || inner == 0 || filters == 0 || input.elements() == 0) return std::nullopt;
  if (channels > all || (channels == 1 && all > 1)) return std::nullopt;
  const double block = std::clamp(kBlockChannels, channels, all), blocks = all / block;
  const double products = is_backward ? op.gradients : 1;
  const double rows = flops / (2 * std::max(products, 1.0) * inner * filters);
  const double pixels = input.elements() / all;
  const bool has_one_pixel = channels == all && inner == channels;
  ConvolutionShape shape{
      .product = {.rows = rows * blocks, .columns = filters / blocks, .inner = inner / channels * block},
      .pixels = pixels * blocks,
      .channels = block,
      .computed_operations = block / channels,
      .gradients = is_backward ? products : 0,
      .is_of_matrices = has_one_pixel && rows == pixels,
      .has_channels_last = op.operands.front().is_transposed()};
  if (shape.has_channels_last) {
    const double skipped_share = has_one_pixel ? std::max(0.0, 1 - rows / pixels) : 0;
    shape.skipped_bytes = static_cast<Bytes>(static_cast<double>(input.bytes) * skipped_share);
    return shape;
  }
  constexpr double kAlignedBytes = 16;
  const auto images = static_cast<double>(input.sizes[0]);
  const double row_bytes = pixels / images * static_cast<double>(input.element_bytes);
  shape.is_of_matrices = shape.is_of_matrices && std::fmod(row_bytes, kAlignedBytes) == 0;
  if (shape.is_of_matrices) {
    shape.images = images;
    return shape;
  }
  constexpr double kChannelsInTime = 22;  // that a pixel takes as long as, if it has fewer
  const double written = rows * filters;
  shape.reordered_elements = products * (pixels * std::max(all, kChannelsInTime) + written);
  shape.reordered_bytes =
      static_cast<Bytes>(kOperandsOfProduct * products * (pixels * all + written)) * input.element_bytes;
  shape.reorders = kOperandsOfProduct * products;
  return shape;
}

}  // namespace offprof
