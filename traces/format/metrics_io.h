#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "traces/model/ledger.h"
#include "traces/model/metrics.h"

namespace offprof {

/// Writes `{"device_peak_bytes": 123, ...}` in the order of metric_keys(), each key followed by its `_min`
/// and `_max` if there is a spread. Absent figures are left out.
nlohmann::ordered_json metrics_to_json(const Metrics& metrics);

/// Reads metrics. Skips unknown keys, so that reports of later versions can be read. `where` is the place
/// that errors name. Throws Error (input).
Metrics metrics_from_json(const nlohmann::json& json, const std::string& where);
/// Throws Error (input) if there is a key that no figure has. For files that people edit, where a misspelled
/// figure would not be checked.
void check_metric_keys(const nlohmann::json& json, const std::string& where);

/// Writes `[{"placement": "host", "reason": "offloaded", "tensors": 3, "bytes": 4096}, ...]`.
nlohmann::ordered_json ledger_to_json(const Ledger& ledger);
Ledger ledger_from_json(const nlohmann::json& json, const std::string& where);

}  // namespace offprof
