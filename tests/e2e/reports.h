#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Returns the output of the built program with `--format json`. The command line must succeed.
nlohmann::json report_of(std::vector<std::string> words);

/// Returns a `--device-memory` in bytes that is too small for this `run` under policy keep, by at most 2 MiB:
/// the peak depends on the LibTorch, whose versions keep workspaces of cuBLAS for different times.
Bytes capacity_below_keep(std::vector<std::string> words);

/// Returns true if the LibTorch of the program keeps the workspaces of cuBLAS, as versions before 2.15 do.
/// Others take one for each operator.
bool keeps_cublas_workspaces();

/// Returns the path of a zoo model with these options, which is created once per process.
std::string zoo_model(const std::string& name, const std::vector<std::string>& options);

/// Writes a model with a parameter `w` of 16 floats and the methods in `source`. Returns its path.
std::string write_model(const std::string& source, const std::string& path);

/// Returns `words` followed by `more`.
std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more);

}  // namespace offprof
