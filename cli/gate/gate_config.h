#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/gate.h"

namespace offprof {

/// Name of the configuration file in the working folder.
inline constexpr const char* kConfigName = "offprof.toml";

/// One model on one device, as a configuration file lists it.
struct GateJob {
  std::string key;                       ///< `MODEL/DEVICE`, or `MODEL` of a trace
  std::string trace{};                   ///< path of a trace that exists; empty: the model is recorded
  std::vector<std::string> run_words{};  ///< of the recording, from `run` on, without its output
  std::string source_root{};             ///< folder of the program
  std::vector<Limit> limits{};           ///< empty: the default ones
};

/// Content of a configuration file's table `gate`.
struct GateConfig {
  std::string path;
  std::string baselines;  ///< path of the file with the baselines
  std::vector<GateJob> jobs;
};

/// Reads a configuration file; docs/reference/configuration.md describes it. Paths in it are relative to its
/// folder; those in the result to the working folder. Throws Error (input), with the line and the column, if
/// it is not TOML, has a key that does not exist, or a value of another type, or lists no model.
GateConfig read_gate_config(const std::string& path);

}  // namespace offprof
