#pragma once

#include <cstdint>
#include <vector>

#include "engine/models/zoo/models.h"

namespace offprof {

/// Describes the layer that follows the attention of a decoder block; its input and output are [batch,
/// length, width].
using FeedForward = ModuleBlueprint (*)(const ZooSizes& sizes);

/// Describes a causal decoder: token and position embedding, pre-layer-norm blocks, a head, the next token's
/// cross entropy. Uses the sizes of decoder_sizes(). Throws Error (input) if the width is not a multiple of
/// the heads.
ModelBlueprint draw_decoder(const ZooSizes& sizes, FeedForward feed_forward);

/// Returns the sizes of a decoder with any feed-forward layer, with `layers` blocks by default.
std::vector<ZooSize> decoder_sizes(std::int64_t layers);

/// Returns the standard deviation of the parameters of a layer that adds to the residual stream of `layers`
/// blocks: divided by sqrt(2 layers), so that the stream keeps its scale (Radford et al. 2019, the GPT-2
/// report).
double residual_deviation(const ZooSizes& sizes, std::int64_t inputs);

/// Returns the size `dropout`, in percent, as a probability.
double dropout_probability(const ZooSizes& sizes);

}  // namespace offprof
