#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/models/zoo/catalog.h"

namespace offprof {

/// The extra file of a model's archive with its input specs, one per line: `int64[4,128]<512`.
inline constexpr const char* kInputsExtraFile = "offprof.inputs";

/// Builds the zoo model with that name and writes it to `path` as a TorchScript archive, in train mode, with
/// parameters that require gradients. `sizes` overrides the defaults of its catalog entry. The same name,
/// sizes, seed and `weights` give the same bytes. With meta parameters the seed does not matter, and no more
/// memory is used than for the archive. The file is written atomically. Throws Error (input) for an unknown
/// model, size or dtype, for sizes out of range or that do not fit each other, and for a path that cannot be
/// written or that ends in `.gz`; Error (environment) for parameters that do not fit into memory.
void save_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes,
                    std::uint64_t seed, const std::string& path, const ZooWeights& weights = {});

}  // namespace offprof
