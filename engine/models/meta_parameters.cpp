#include "engine/models/meta_parameters.h"

#include "traces/base/error.h"

namespace offprof {

bool has_meta_parameters(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
  return tensor.storage().nbytes() < tensor.nbytes();
}

bool has_meta_parameters(const Model& model) {
  const auto any = [](const auto& tensors) {
    for (const at::Tensor& tensor : tensors)
      if (has_meta_parameters(tensor)) return true;
    return false;
  };
  return any(model.module.parameters()) || any(model.module.buffers());
}

void refuse_meta_parameters(const Model& model) {
  if (!has_meta_parameters(model)) return;
  throw input_error(
      model.info.name +
          ": the model has meta parameters (zoo make --meta), so it runs only on --device virtual",
      "use --device virtual:h200 or another profile, give values with --load, or make the model without "
      "--meta");
}

}  // namespace offprof
