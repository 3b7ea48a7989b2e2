#pragma once

#include <cstdint>
#include <map>
#include <string>

#include "engine/zoo/catalog.h"

namespace offprof {

/// The extra file of a model's archive that holds its input specs, one a line: `int64[4,128]<512`.
inline constexpr const char* kInputsExtraFile = "offprof.inputs";

/// Makes the zoo's model of that name and writes it to `path` as a TorchScript archive, in train mode, its
/// parameters wanting gradients. `sizes` overrides the defaults of its catalog entry. The same name, sizes
/// seed and `weights` give the same bytes; weightless ones whatever the seed, and never more memory than the
/// archive. The file appears whole or not at all. Throws Error: no such model or size, sizes out of range or
/// unfit, a path that cannot be written or that ends in
/// `.gz`, an unknown dtype (input); weights that do not fit into memory (environment).
void save_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes,
                    std::uint64_t seed, const std::string& path, const ZooWeights& weights = {});

}  // namespace offprof
