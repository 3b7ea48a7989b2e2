#pragma once

#include <cstdint>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "cli/command.h"
#include "engine/zoo/catalog.h"

namespace offprof {

struct ZooListReport {
  std::vector<ZooModel> models;
};

nlohmann::ordered_json to_json(const ZooListReport& report);
std::string to_text(const ZooListReport& report, const Page& page);

/// The device flags of `run` for a model whose weights take no room. Where not even its weights, gradients
/// and AdamW state fit into the memory of plain `--device virtual`, more memory is among them. `dtype` as in
/// ZooWeights. Throws Error (input) as draw_zoo_model does.
std::string virtual_device_flags(const std::string& model, const std::map<std::string, std::int64_t>& sizes,
                                 const std::string& dtype);

/// `offprof zoo list` and `offprof zoo make NAME -o model.pt`: models to try things on, made with no Python.
std::unique_ptr<Subcommand> make_zoo_command();

}  // namespace offprof
