#pragma once

#include <ATen/core/Tensor.h>

#include "engine/models/model.h"

namespace offprof {

/// Returns true if the tensor is a meta parameter: its storage holds fewer bytes than its elements need,
/// because one element stands for all, with strides of 0. `offprof zoo make --meta` makes archives of such
/// parameters, which take no space in the file or in memory.
bool has_meta_parameters(const at::Tensor& tensor);

/// Returns true if the model has a meta parameter or buffer.
bool has_meta_parameters(const Model& model);

/// Throws Error (input) if the model has meta parameters. Call it before the model computes with the loaded
/// values: an optimizer cannot write to meta parameters, and they hold nothing to train.
void refuse_meta_parameters(const Model& model);

}  // namespace offprof
