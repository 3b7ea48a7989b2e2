#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "simulator/tuner/tune.h"
#include "traces/model/trace.h"

namespace offprof {

/// A configuration of the model (with activation checkpointing, layer slices, parameter offload, or none of
/// these) that has a trace, and the result of tuning it.
struct TunedConfiguration {
  std::string trace;  ///< path of the trace
  RunSettings settings{};
  Candidate keep;                   ///< result with nothing offloaded
  std::optional<Candidate> chosen;  ///< nullopt: no policy reaches the goal
  bool is_best = false;             ///< true if it reaches the goal best of those tuned together
};

/// Returns the words of `run` that select the configuration: `--checkpoint`, `layers.*`, `--offload-params`,
/// `host`. Empty if there are none.
std::vector<std::string> configuration_words(const RunSettings& settings);

/// Returns the same words quoted for a shell: `--checkpoint 'layers.*' --offload-params host`.
std::string flags_of(const RunSettings& settings);

/// Throws Error (input) if the other trace has another model, inputs, loss, optimizer, device or link, so
/// that the two steps cannot be compared.
void refuse_other_step(const Trace& base, const std::string& base_path, const Trace& other,
                       const std::string& other_path);

/// Returns a table of the configurations; empty if there is only one.
std::string configurations_text(const std::vector<TunedConfiguration>& configurations, const Page& page);
nlohmann::ordered_json configurations_to_json(const std::vector<TunedConfiguration>& configurations);

}  // namespace offprof
