#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "traces/model/step_program.h"
#include "traces/model/trace.h"

namespace offprof {

/// Returns the dimensions in `float32[8,3]`; empty if the text is no spec of a tensor with dimensions.
std::vector<std::int64_t> dimensions_of(std::string_view spec);

/// Returns the samples and tokens of input specs: the first dimension of the first one, and batch x sequence
/// of specs such as `int64[4,128]<512`, the only kind that counts as tokens if it has two dimensions. Both
/// are nullopt for words that are no specs, as those of a training script.
StepSize size_of_inputs(const std::vector<std::string>& inputs);

/// Returns the size of a trace's step: by its inputs, or by what was counted where they do not tell.
StepSize step_size(const Trace& trace);

/// Returns `13100 tokens/s`, or samples per second for inputs that are no tokens; empty for a program whose
/// inputs are not known.
std::string rate_text(const StepSize& size, double seconds);

/// Returns `, 13100 tokens/s` for the end of a headline; empty if the rate or the step time is not known.
std::string rate_beside(const StepSize& size, const Metrics& metrics);

/// Returns the rate as JSON: `tokens_per_second` or `samples_per_second`; an empty object if it is not known.
nlohmann::ordered_json rate_to_json(const StepSize& size, const Metrics& metrics);

/// Returns true if most bytes that autograd saves are of type bfloat16: then the matrix products run in it.
bool computes_in_bfloat16(const StepProgram& program);

}  // namespace offprof
