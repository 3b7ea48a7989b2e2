#pragma once

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

/// `offprof zoo list` and `offprof zoo make NAME -o model.pt`: models to try things on, made with no Python.
std::unique_ptr<Subcommand> make_zoo_command();

}  // namespace offprof
