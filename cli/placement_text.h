#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/terminal.h"
#include "simulator/tune.h"

namespace offprof {

/// What each placement costs and saves by itself, beside keeping everything; empty where none was searched.
std::string placements_text(const TuneResult& result, const Page& page);

/// `{"alone": [{"placement": "bits", "lossless": true, "tensors": 4, "bytes": 4096, "predicted": {...}},
/// ...], "groups": 12, "replayed": 300}`.
nlohmann::ordered_json to_json(const PlacementSearchResult& placements);

}  // namespace offprof
