#pragma once

#include <torch/csrc/jit/ir/ir.h>

#include <memory>
#include <vector>

namespace offprof {

/// Returns the nodes of a graph and of the blocks inside it, depth first. The graph owns them.
std::vector<torch::jit::Node*> all_nodes(std::shared_ptr<torch::jit::Graph> graph);

}  // namespace offprof
