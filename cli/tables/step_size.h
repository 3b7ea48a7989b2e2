#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/model/step_program.h"

namespace offprof {

/// Amount of data that a step processes, from the input specs of its run.
struct StepSize {
  std::optional<std::int64_t> samples{};  ///< first dimension of the first input; nullopt: not known
  std::optional<std::int64_t> tokens{};   ///< batch x sequence; nullopt: the model has no input of tokens
};

/// Returns the dimensions in `float32[8,3]`; empty if the text is no spec of a tensor with dimensions.
std::vector<std::int64_t> dimensions_of(std::string_view spec);

/// Returns the size for input specs such as `int64[4,128]<512`, the only kind that counts as tokens if it has
/// two dimensions. Both members are nullopt for words that are no specs, as those of a training script.
StepSize step_size(const std::vector<std::string>& inputs);

/// Returns `13100 tokens/s`, or samples per second for inputs that are no tokens; empty for a program whose
/// inputs are not known.
std::string rate_text(const StepSize& size, double seconds);

/// Returns true if most bytes that autograd saves are of type bfloat16: then the matrix products run in it.
bool computes_in_bfloat16(const StepProgram& program);

}  // namespace offprof
