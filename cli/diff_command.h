#pragma once

#include <memory>
#include <nlohmann/json.hpp>
#include <string>

#include "cli/command.h"
#include "traces/diff.h"

namespace offprof {

struct DiffReport {
  Diff diff;
  std::size_t ops_shown = 10;  ///< in text; JSON has them all
};

nlohmann::ordered_json to_json(const DiffReport& report);
std::string to_text(const DiffReport& report, const Page& page);

/// `offprof diff BASE NEW`: what changed from one run to another. It judges nothing: see `offprof gate`.
std::unique_ptr<Subcommand> make_diff_command();

}  // namespace offprof
