#include "engine/devices/virtual_gpu/model/convolution_time.h"

#include <algorithm>

#include "engine/devices/virtual_gpu/model/product_time.h"

namespace offprof {
namespace {

/// Returns the share of what matrix products reach that a product of parts of images reaches: they are
/// gathered while they are multiplied, and the first ones are waited for.
double gathering_share(const ProductShape& product, int multiprocessors) {
  constexpr double kLongest = 1.1, kHalfInner = 400;  // cuDNN 9.19 on an H100
  return std::min(1.0, kLongest * product.inner / (product.inner + kHalfInner)) *
         tile_share(product, multiprocessors);
}

/// Returns the time of a convolution with so few channels that its filters are padded, and loaded by shorter
/// instructions. The gradient of the images is that of `kTileChannels`, or in tf32, is computed without
/// tensor cores. Shares are those of cuDNN 9.19 on an H100.
double few_channels_seconds(const OpWork& work, double flops, double rate) {
  const ConvolutionShape& shape = *work.convolution;
  const bool is_tf32 = work.dtype == "tf32";
  constexpr double kWithoutTensorCores = 0.3;
  if (!is_tf32 && !work.has_16_bits())
    return flops * std::max(shape.gradients, 1.0) / (rate * kWithoutTensorCores);
  constexpr double kLeast = 8, kLeastInTf32 = 4, kTileChannels = 45;
  constexpr double kForwardShare = 0.13, kWeightShare = 0.24, kImageShare = 0.2, kImageShareInTf32 = 0.04;
  const double padded = flops * (is_tf32 ? kLeastInTf32 : kLeast) / shape.channels;
  if (shape.gradients == 0) return padded / (rate * kForwardShare);
  const double of_weight = padded / (rate * kWeightShare);
  if (shape.gradients < 2) return of_weight;
  return of_weight + (is_tf32 ? flops / (rate * kImageShareInTf32)
                              : flops * kTileChannels / shape.channels / (rate * kImageShare));
}

}  // namespace

double convolution_seconds(const DeviceProfile& profile, const OpWork& work, double rate) {
  constexpr double kLeastChannels = 8, kWeightShare = 0.85, kWeightShareInTf32 = 0.38;
  const ConvolutionShape& shape = *work.convolution;
  const bool is_tf32 = work.dtype == "tf32";
  const double flops = work.flops * shape.computed_operations / std::max(shape.gradients, 1.0);
  if (shape.channels < kLeastChannels) return few_channels_seconds(work, flops, rate);
  const double order = is_tf32 && shape.is_of_matrices && !shape.has_channels_last ? kApartInTf32 : 1;
  const auto seconds_of = [&](ProductShape product) {
    product.rows /= shape.images;
    product.batch = shape.images;
    const double share = shape.is_of_matrices ? tile_share(product, profile.multiprocessors)
                                              : gathering_share(product, profile.multiprocessors);
    return flops / (rate * order * share);
  };
  if (shape.gradients == 0) return seconds_of(shape.product);
  const double of_weight = flops / (rate * (is_tf32 ? kWeightShareInTf32 : kWeightShare));
  if (shape.gradients < 2) return of_weight;
  const double inner = shape.product.columns * shape.product.inner / shape.channels;
  return of_weight + seconds_of({.rows = shape.pixels,
                                 .columns = shape.channels,
                                 .inner = inner * std::min(1.0, shape.product.rows / shape.pixels)});
}

double beside_products_seconds(const DeviceProfile& profile, const ConvolutionShape& shape) {
  constexpr double kLoadsOfParts = 12, kLeastRowsOfParts = 4096;  // loads one after the other, on an H100
  constexpr double kElementShare = 1 / 1.5;  // of the time of an elementwise kernel with three operands
  const double by_memory = static_cast<double>(shape.reordered_bytes) /
                           (profile.memory_bytes_per_second * profile.memory_efficiency);
  const double by_elements = kElementShare * shape.reordered_elements / profile.elements_per_second();
  return std::max(by_memory, by_elements) +
         ((shape.reorders + std::max(shape.gradients - 1, 0.0)) * static_cast<double>(profile.kernel_ns) +
          (shape.gradients > 0 && shape.product.rows > kLeastRowsOfParts ? kLoadsOfParts : 0) *
              static_cast<double>(profile.memory_latency_ns)) /
             kNanosecondsPerSecond;
}

}  // namespace offprof
