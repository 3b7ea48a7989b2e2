#pragma once

#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "traces/model/parameter_settings.h"
#include "traces/model/policy.h"

namespace offprof {

/// Policy that stands for the settings of another engine.
struct EngineImport {
  Policy policy;
  std::optional<ParameterSettings> parameters{};  ///< offload of parameters, which a run adds to the policy
  /// True if the policy's scheduler has the engine's rules, so that its figures are the engine's. Otherwise
  /// they are those of offprof's own engine with a policy that moves the same tensors.
  bool has_engine_rules = false;
  /// One sentence for each setting that the policy does not contain.
  std::vector<std::string> differences{};
};

/// Engine whose settings can be imported.
struct ImportSource {
  std::string_view name;    ///< value of `--from`
  std::string_view title;   ///< name for people
  std::string_view format;  ///< of the settings: `JSON`
  /// Reads the text of a file with settings; `path` is its name in errors. Throws Error (input) if it is
  /// damaged, or if values are out of range.
  EngineImport (*read)(const std::string& text, const std::string& path);
};

/// Returns all sources, in the order in which texts list them. To add one, write a `read` function, declare
/// it in import_sources.h, and add a line to the table in engine_import.cpp.
std::span<const ImportSource> import_sources();

}  // namespace offprof
