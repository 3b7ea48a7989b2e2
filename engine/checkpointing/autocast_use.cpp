#include "engine/checkpointing/autocast_use.h"

#include <fmt/format.h>

#include "engine/checkpointing/graph_nodes.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

using torch::jit::Module;

bool uses_autocast(const Module& module) {
  for (const torch::jit::Method& method : module.get_methods())
    for (const torch::jit::Node* node : all_nodes(method.graph()))
      if (node->kind() == c10::prim::Enter &&
          node->input()->type()->str().find("autocast") != std::string::npos)
        return true;
  for (const Module& child : module.children())
    if (uses_autocast(child)) return true;
  return false;
}

}  // namespace

void refuse_autocast(const Module& model, const std::string& parts) {
  if (!uses_autocast(model)) return;
  throw input_error(
      fmt::format("{0}: a method of the model enables autocast, which would not apply to its {0}", parts),
      fmt::format("remove --{}, or export the model with torch.jit.trace under autocast", parts));
}

}  // namespace offprof
