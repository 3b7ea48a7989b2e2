#pragma once

#include <cstdint>
#include <string>
#include <vector>

#include "engine/models/zoo/blueprint.h"

namespace offprof {

/// Returns the standard deviation 1/sqrt(inputs): a layer keeps the scale of its input.
double unit_deviation(std::int64_t inputs);

/// Returns the standard deviation sqrt(2/inputs), for a layer before a rectifier (He et al. 2015, "Delving
/// Deep into Rectifiers").
double rectifier_deviation(std::int64_t inputs);

/// y = x W^T + b with W [outputs, inputs]. `deviation` is the standard deviation of W; b starts at zero.
ModuleBlueprint linear(std::int64_t inputs, std::int64_t outputs, double deviation);

/// y = x W^T with W [outputs, inputs].
ModuleBlueprint projection(std::int64_t inputs, std::int64_t outputs, double deviation);

/// Layer norm over the last dimension.
ModuleBlueprint layer_norm(std::int64_t width);

/// Root mean square norm over the last dimension (Zhang and Sennrich 2019).
ModuleBlueprint rms_norm(std::int64_t width);

/// Convolution over [batch, channels, height, width] without bias, padded so that stride 1 keeps height and
/// width. `kernel` is odd.
ModuleBlueprint convolution(std::int64_t inputs, std::int64_t outputs, std::int64_t kernel,
                            std::int64_t stride);

/// Batch norm over channels, with running statistics in buffers.
ModuleBlueprint batch_norm(std::int64_t channels);

/// Convolution, batch norm, rectifier in place.
ModuleBlueprint convolution_unit(std::int64_t inputs, std::int64_t outputs, std::int64_t kernel,
                                 std::int64_t stride);

/// Looks up rows of a [rows, width] table by their ids.
ModuleBlueprint embedding(std::int64_t rows, std::int64_t width);

/// Mean cross entropy of logits [batch, length, vocabulary] with the ids [batch, length] shifted by one
/// position: `forward(logits, ids)`.
ModuleBlueprint next_token_loss();

/// Runs the modules in sequence. Passes the arguments in `extra` (`, mask`) to each of them.
ModuleBlueprint sequence(std::vector<ModuleBlueprint> modules, const std::string& extra = "");

/// Returns the spec `float32[8,3,96,96]`.
std::string float_input(const std::vector<std::int64_t>& shape);

/// Returns the spec `int64[4,128]<512`: integers below `end`.
std::string integer_input(const std::vector<std::int64_t>& shape, std::int64_t end);

}  // namespace offprof
