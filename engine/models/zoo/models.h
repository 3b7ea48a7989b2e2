#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "engine/models/zoo/blueprint.h"
#include "engine/models/zoo/catalog.h"

namespace offprof {

/// All sizes of one model by name, each within its range.
using ZooSizes = std::map<std::string, std::int64_t>;

/// A zoo model: its description, and the function that builds its blueprint. `draw` throws Error (input) if
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

/// Returns every entry, in the order of lists. Add a new model to the table in this function.
const std::vector<ZooEntry>& zoo_entries();

/// Returns the model's default sizes with the overrides. Throws Error (input) for an unknown size or a value
/// out of its range.
ZooSizes resolve_zoo_sizes(const ZooModel& model, const std::map<std::string, std::int64_t>& overrides);

/// Throws Error (input) unless the size called `whole` is a multiple of the one called `part`.
void require_multiple(const ZooSizes& sizes, const std::string& whole, const std::string& part);

}  // namespace offprof
