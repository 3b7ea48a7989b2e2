#include "engine/devices/virtual_gpu/model/attention_time.h"

#include <cmath>

namespace offprof {
namespace {

/// Factors of the share of the peak that attention kernels reach.
struct AttentionRates {
  double longest = 1;                                    ///< of long sequences and width 128
  double narrow = 1;                                     ///< heads of width 64, relative to 128
  double half_positions = 0, half_positions_causal = 0;  ///< of keys, at which half of the share is reached
  double ragged = 1;  ///< sequences that end within a tile, beside what is computed in vain
};

/// Read off FlashAttention-2's figures for A100 and H100 (Dao 2023; flash2_a100_fwd_bwd_benchmark.png,
/// flash3_fp16_fwd.png of Dao-AILab/flash-attention).
constexpr AttentionRates kFlash = {1, 0.84, 150, 500}, kFlashBackward = {0.83, 0.84, 150, 500};
/// cuDNN's kernels, which PyTorch chooses on compute capability 9.0 and 10.0, and efficient attention in
/// float32, relative to what matrix products reach. From cuDNN 9.19 and PyTorch 2.11 on an H100
/// (traces/recorded/h100/kernels.csv).
constexpr AttentionRates kCudnn = {0.9, 0.75, 200, 850, 0.85}, kCudnnBackward = {0.82, 0.8, 250, 850};
constexpr AttentionRates kFloat32 = {0.75, 1, 250, 400};

/// Share of their speed that cuDNN's kernels reach if they add a mask to the scores. From GPT-2 and Llama of
/// transformers 4.57 on an H100, with masks of all pairs of positions.
constexpr double kMaskedForward = 0.54, kMaskedBackward = 0.73;

/// Positions of queries and of keys in a tile of cuDNN's kernels.
constexpr double kTilePositions = 128;

double in_whole_tiles(double positions) {
  return std::ceil(positions / kTilePositions) * kTilePositions;
}

/// Returns the share of the peak, of sequences in whole tiles.
double attention_share(const AttentionRates& rates, const AttentionShape& shape, double positions) {
  constexpr double kNarrowWidth = 64;
  const double half = shape.is_causal ? rates.half_positions_causal : rates.half_positions;
  return rates.longest * (shape.width <= kNarrowWidth ? rates.narrow : 1) * positions / (positions + half);
}

/// Returns the share that cuDNN's kernels reach of what matrix products reach. They compute whole tiles.
double cudnn_attention_share(const AttentionShape& shape) {
  const double masked = shape.is_backward ? kMaskedBackward : kMaskedForward;
  const double queries = in_whole_tiles(shape.queries), positions = in_whole_tiles(shape.positions);
  const AttentionRates& rates = shape.is_backward ? kCudnnBackward : kCudnn;
  const double needed = shape.queries * shape.positions / (queries * positions);
  return attention_share(rates, shape, positions) * needed * (needed < 1 ? rates.ragged : 1) *
         (shape.has_mask ? masked : 1);
}

}  // namespace

double attention_share(const DeviceProfile& profile, const OpWork& work) {
  const AttentionShape& shape = *work.attention;
  if (!work.has_16_bits())
    return profile.compute_efficiency * attention_share(kFloat32, shape, shape.positions);
  if (shape.is_cudnn) return profile.compute_efficiency * cudnn_attention_share(shape);
  return profile.attention_efficiency *
         attention_share(shape.is_backward ? kFlashBackward : kFlash, shape, shape.positions);
}

double beside_backward_seconds(const DeviceProfile& profile, const AttentionShape& shape) {
  constexpr double kKernels = 2, kBandwidthShare = 0.9;
  if (shape.beside_backward_bytes == 0) return 0;
  return static_cast<double>(shape.beside_backward_bytes) /
             (profile.memory_bytes_per_second * profile.memory_efficiency * kBandwidthShare) +
         kKernels * static_cast<double>(profile.kernel_ns) / kNanosecondsPerSecond;
}

}  // namespace offprof
