#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "cli/terminal.h"
#include "simulator/tune.h"
#include "traces/trace.h"

namespace offprof {

/// A way to run the model (in segments, in shards, with its weights off the device, or none of these), of
/// which there is a trace, and what was tuned for it.
struct TunedWay {
  std::string trace;  ///< its path
  RunSettings settings{};
  Candidate keep;                   ///< nothing offloaded
  std::optional<Candidate> chosen;  ///< nullopt: no policy reaches the goal
  bool is_best = false;             ///< for the goal, of those that were tuned together
};

/// The words of `run` for it: `--segments`, `layers.*`, `--weights`, `host`; empty: none.
std::vector<std::string> way_words(const RunSettings& settings);

/// The same as a shell takes it: `--segments 'layers.*' --weights host`.
std::string flags_of(const RunSettings& settings);

/// Throws Error (input) where the other trace is not of the same model, inputs, loss, optimizer, device
/// and link, so that the one's step says nothing of the other's.
void refuse_other_step(const Trace& base, const std::string& base_path, const Trace& other,
                       const std::string& other_path);

/// A table of the ways; empty where there is one.
std::string ways_text(const std::vector<TunedWay>& ways, const Page& page);
nlohmann::ordered_json ways_to_json(const std::vector<TunedWay>& ways);

}  // namespace offprof
