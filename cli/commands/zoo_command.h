#pragma once

#include <cstdint>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/base/command.h"
#include "engine/models/zoo/catalog.h"

namespace offprof {

struct ZooListReport {
  std::vector<ZooModel> models;
};

nlohmann::ordered_json to_json(const ZooListReport& report);
std::string to_text(const ZooListReport& report, const Page& page);

/// Returns the device flags of `run` for a model with meta parameters. If the parameters, gradients and AdamW
/// state do not fit into the memory of plain `--device virtual`, the flags request more memory. `dtype` as in
/// ZooWeights. Throws Error (input) as draw_zoo_model does.
std::string virtual_device_flags(const std::string& model, const std::map<std::string, std::int64_t>& sizes,
                                 const std::string& dtype);

}  // namespace offprof
