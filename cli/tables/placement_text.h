#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "cli/terminal/terminal.h"
#include "simulator/tuner/tune.h"

namespace offprof {

/// Returns a table of the cost and savings of each placement alone, compared with keeping everything; empty
/// if no placements were searched.
std::string placements_text(const TuneResult& result, const Page& page);

/// Returns `{"alone": [{"placement": "bits", "lossless": true, "tensors": 4, "bytes": 4096, "predicted":
/// {...}}, ...], "groups": 12, "replayed": 300}`.
nlohmann::ordered_json to_json(const PlacementSearchResult& placements);

}  // namespace offprof
