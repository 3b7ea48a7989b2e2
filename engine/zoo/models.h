#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/zoo/blueprint.h"
#include "engine/zoo/catalog.h"

namespace offprof {

/// Every size of one model by its name, each within its range.
using ZooSizes = std::map<std::string, std::int64_t>;

/// A model of the zoo: its description, and the function that draws it. `draw` throws Error (input) where
/// sizes do not fit each other.
struct ZooEntry {
  ZooModel model;
  ModelBlueprint (*draw)(const ZooSizes& sizes) = nullptr;
};

ZooEntry mlp_entry();
ZooEntry transformer_entry();
ZooEntry llama_entry();
ZooEntry moe_entry();
ZooEntry lstm_entry();
ZooEntry resnet_entry();
ZooEntry unet_entry();

/// Every entry, in the order in which they are listed. A new model is added to the table behind this
/// function.
const std::vector<ZooEntry>& zoo_entries();

/// The model's default sizes with the overrides in their place. Throws Error (input): a size that the model
/// does not have, or a value out of its range.
ZooSizes resolve_zoo_sizes(const ZooModel& model, const std::map<std::string, std::int64_t>& overrides);

/// Throws Error (input) unless the size called `whole` is a multiple of the one called `part`.
void require_multiple(const ZooSizes& sizes, const std::string& whole, const std::string& part);

}  // namespace offprof
