#pragma once

#include <functional>
#include <set>
#include <string>
#include <vector>

namespace offprof {

/// Returns the fewest module paths that contain all modules of `wanted` for which this is possible without a
/// module of `unwanted`, sorted. A path contains itself and all paths below it. The model itself is never
/// returned, and neither is a container (a path whose children are all numbers), because a container has no
/// forward of its own. A module of `wanted` that contains one of `unwanted` is left out.
std::vector<std::string> covering_paths(const std::set<std::string>& wanted,
                                        const std::set<std::string>& unwanted);

/// Returns true if `path` is `root` or below it: `layers.1.mlp` is below `layers.1`.
bool is_within(const std::string& path, const std::string& root);

/// Returns the path up to its first number, the usual unit of checkpointing and sharding: `model.layers.3`
/// for `model.layers.3.mlp.act`; without a number, up to the first name that ends in a digit:
/// `blocks.layer3`. Without either, returns the first component.
std::string block_of(const std::string& path);

}  // namespace offprof
