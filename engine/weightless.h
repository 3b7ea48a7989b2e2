#pragma once

#include <ATen/core/Tensor.h>

#include "engine/model.h"

namespace offprof {

/// Whether the tensor's storage holds less than its elements take: one element stands at all places, with
/// strides of 0. `offprof zoo make --meta` makes archives of such weights, which take no room in the file nor
/// in memory.
bool is_weightless(const at::Tensor& tensor);

/// Whether any parameter or buffer of the model is weightless.
bool is_weightless(const Model& model);

/// To be called where the model would compute with what it loaded. Throws Error (input) where it is
/// weightless: an optimizer cannot write to such weights, and there is nothing in them to learn from.
void refuse_weightless(const Model& model);

}  // namespace offprof
