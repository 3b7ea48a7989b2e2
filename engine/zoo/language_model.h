#pragma once

#include <cstdint>
#include <vector>

#include "engine/zoo/models.h"

namespace offprof {

/// Draws the layer that follows the attention of a decoder block: [batch, length, width] to the same.
using FeedForward = ModuleBlueprint (*)(const ZooSizes& sizes);

/// A causal decoder: token and position embedding, pre-layer-norm blocks, a head, the next token's cross
/// entropy. Sizes used: those of decoder_sizes(). Throws Error (input) where the width is not a multiple of
/// the heads.
ModelBlueprint draw_decoder(const ZooSizes& sizes, FeedForward feed_forward);

/// The sizes of a decoder whatever its feed-forward layer, with that many blocks by default.
std::vector<ZooSize> decoder_sizes(std::int64_t layers);

/// The weights' deviation of a layer whose output joins the residual stream of `layers` blocks: divided by
/// sqrt(2 layers), so that the stream keeps its scale (Radford et al. 2019, the GPT-2 report).
double residual_deviation(const ZooSizes& sizes, std::int64_t inputs);

/// The size `dropout`, in percent, as a probability.
double dropout_probability(const ZooSizes& sizes);

}  // namespace offprof
