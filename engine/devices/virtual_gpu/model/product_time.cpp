#include "engine/devices/virtual_gpu/model/product_time.h"

#include <algorithm>
#include <cmath>

namespace offprof {
namespace {

/// Tile of a result, and the share of the rate that a multiprocessor reaches on it. The shares are assumed:
/// in NVIDIA's figures for square bfloat16 products on an A100, those of 2048 reach three quarters of those
/// of 4096.
struct Tile {
  double rows, columns, share;
};
constexpr Tile kTiles[] = {{128, 256, 1}, {256, 128, 1}, {128, 128, 0.9}, {128, 64, 0.75}, {64, 64, 0.6}};

constexpr double kSplits[] = {1, 2, 4, 8, 16};
constexpr double kLeastInner = 512;  ///< inner dimension of a part, at least
constexpr double kSplitShare = 0.9;  ///< assumed: the parts have to be added

double share_of(const Tile& tile, double split, const ProductShape& product, double multiprocessors) {
  const double tiles =
      std::ceil(product.rows / tile.rows) * std::ceil(product.columns / tile.columns) * product.batch * split;
  const double waves = std::ceil(tiles / multiprocessors);
  const double computed = waves * multiprocessors * tile.rows * tile.columns / split;
  const double needed = product.rows * product.columns * product.batch;
  return needed / computed * tile.share * (split > 1 ? kSplitShare : 1);
}

}  // namespace

double tile_share(const ProductShape& product, int multiprocessors) {
  double best = 0;
  for (const Tile& tile : kTiles) {
    for (const double split : kSplits) {
      if (split > 1 && product.inner / split < kLeastInner) break;
      best = std::max(best, share_of(tile, split, product, multiprocessors));
    }
  }
  return std::min(best, 1.0);
}

}  // namespace offprof
