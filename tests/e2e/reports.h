#pragma once

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace offprof {

/// What the built program prints with `--format json`, of a command line that must succeed.
nlohmann::json report_of(std::vector<std::string> words);

/// A model of the zoo with these options, made once in the process.
std::string zoo_model(const std::string& name, const std::vector<std::string>& options);

/// Writes a model with a parameter `w` of 16 floats and the methods of the source; returns its path.
std::string write_model(const std::string& source, const std::string& path);

/// `words`, then `more`.
std::vector<std::string> joined(std::vector<std::string> words, const std::vector<std::string>& more);

}  // namespace offprof
