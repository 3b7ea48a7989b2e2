#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>

namespace offprof {

/// Throws Error (input) where a method of the model switches autocast on, which parts of it that run by
/// themselves, its `parts`, would not see. Tracing leaves casts instead.
void refuse_autocast(const torch::jit::Module& model, const std::string& parts);

}  // namespace offprof
