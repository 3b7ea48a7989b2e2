#include "engine/models/weightless.h"

#include "traces/base/error.h"

namespace offprof {

bool is_weightless(const at::Tensor& tensor) {
  if (!tensor.defined() || tensor.layout() != at::kStrided || !tensor.has_storage()) return false;
  return tensor.storage().nbytes() < tensor.nbytes();
}

bool is_weightless(const Model& model) {
  const auto any = [](const auto& tensors) {
    for (const at::Tensor& tensor : tensors)
      if (is_weightless(tensor)) return true;
    return false;
  };
  return any(model.module.parameters()) || any(model.module.buffers());
}

void refuse_weightless(const Model& model) {
  if (!is_weightless(model)) return;
  throw input_error(
      model.info.name + ": its weights take no room (zoo make --meta): it runs on --device virtual only",
      "give --device virtual:h200 or another profile, or make the model without --meta");
}

}  // namespace offprof
