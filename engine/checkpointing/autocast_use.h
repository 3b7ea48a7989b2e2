#pragma once

#include <torch/csrc/jit/api/module.h>

#include <string>

namespace offprof {

/// Throws Error (input) if a method of the model enables autocast: `parts`, the parts of the model that run
/// by themselves, would not see it. (A traced model has casts instead.)
void refuse_autocast(const torch::jit::Module& model, const std::string& parts);

}  // namespace offprof
