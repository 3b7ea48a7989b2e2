#pragma once

#include "engine/devices/virtual_gpu/work/op_work.h"

namespace offprof {

/// Share of the peak of other products, if neither operand has those elements adjacent that are multiplied
/// and added: tensor cores take operands in tf32 only in that order. From cuBLAS 13 and cuDNN 9.19 on an
/// H100.
inline constexpr double kApartInTf32 = 0.55;

/// Returns the share of the device's rate that a matrix product reaches because its result is computed in
/// tiles, at most 1. `multiprocessors` is their number.
///
/// Each multiprocessor computes one tile at a time, so the last wave of tiles may leave some idle (NVIDIA,
/// "Matrix Multiplication Background User's Guide", tile and wave quantization). Small tiles load more
/// operands for an operation. A product with few tiles divides its inner dimension (split-k). cuBLAS chooses
/// the tile; here it is the fastest of a few.
double tile_share(const ProductShape& product, int multiprocessors);

}  // namespace offprof
