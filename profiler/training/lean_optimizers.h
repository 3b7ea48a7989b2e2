#pragma once

#include <ATen/core/Tensor.h>

#include <memory>
#include <vector>

#include "profiler/plugin/optimizer_settings.h"
#include "profiler/training/optimizer.h"

namespace offprof {

/// Smallest parameter, in values, whose states have eight bits; smaller ones keep them in float32, as in
/// bitsandbytes (`min_8bit_size`).
inline constexpr std::int64_t kLeastEightBitValues = 4096;
/// Values that share a scale (Dettmers et al., 8-bit Optimizers via Block-wise Quantization, 2022;
/// bitsandbytes uses 256 for AdamW).
inline constexpr std::int64_t kBlockValues = 256;

/// Returns AdamW with states and master weights of the given precision. It computes in float32, in parts of a
/// parameter, so that it needs little memory beside its states, like a fused kernel. States of eight bits are
/// linear in a block; those of the second moment are its square roots.
std::unique_ptr<Optimizer> make_lean_adamw(const OptimizerSettings& settings,
                                           const std::vector<at::Tensor>& parameters, double learning_rate);

/// Returns Adafactor (Shazeer, Stern, 2018) with the defaults and the states of torch.optim.Adafactor: sums
/// by rows and columns for parameters of two and more dimensions, all second moments for others.
std::unique_ptr<Optimizer> make_adafactor(const std::vector<at::Tensor>& parameters);

}  // namespace offprof
