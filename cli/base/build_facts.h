#pragma once

#include <string>
#include <vector>

namespace offprof {

/// A line of `offprof --version --verbose`.
struct BuildFact {
  std::string name;
  std::string value;
};

/// Returns the facts of this build: compiler, torch, CUDA, libraries, features.
std::vector<BuildFact> build_facts();

}  // namespace offprof
