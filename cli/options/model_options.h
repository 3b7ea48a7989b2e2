#pragma once

#include <CLI/App.hpp>
#include <cstdint>
#include <optional>
#include <string>

#include "profiler/plugin/plugin.h"

namespace offprof {

/// Options that change how a TorchScript module runs: layer slices, and the offload of parameters.
class ModelOptions {
 public:
  /// Add the options to a command. This object must outlive the parse.
  void add_slices_to(CLI::App& app);
  void add_parameters_to(CLI::App& app);

  /// Sets the settings of the request, after the parse. Throws Error (input) for options that exclude each
  /// other.
  void set(RunRequest& request) const;

 private:
  std::optional<SliceSettings> slices(const RunSettings& settings) const;
  std::optional<ParameterSettings> parameters() const;

  std::optional<SliceSettings> slices_;
  std::optional<std::int64_t> microbatches_;
  std::optional<std::string> place_;  ///< of parameters
  std::optional<Bytes> window_;       ///< of parameters on the device
  std::string folder_;                ///< for the file of parameters
};

}  // namespace offprof
