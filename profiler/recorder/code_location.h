#pragma once

#include <functional>
#include <string>

namespace offprof {

/// Place in the code of a model or a program.
struct CodeLocation {
  std::string
      module;        ///< path of the innermost submodule that is running; empty: the model itself, or unknown
  std::string line;  ///< source line that is running, `FILE:LINE`; empty: unknown
};

/// Returns the place that the calling thread is running. Called for each saved tensor of a recorded step.
using CodeLocator = std::function<CodeLocation()>;

/// Returns the place in a TorchScript module. The source line is not known.
CodeLocation location_in_torch_script();

}  // namespace offprof
