#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace offprof {

/// A tensor of a model as it starts: uniformly distributed around `mean` with that standard deviation.
struct TensorBlueprint {
  std::string name;
  std::vector<std::int64_t> shape;
  double mean = 0;
  double deviation = 0;  ///< 0: every element is `mean`
};

/// A TorchScript module in words: what it holds, and the source of its methods. build.h makes the module.
/// The source may call builtin `torch.*` operators and the children's methods (`self.norm.forward(x)`); every
/// module also has the attribute `training`.
struct ModuleBlueprint {
  std::string type{};  ///< name of its class, `Linear`
  std::string name{};  ///< under which its parent holds it
  std::string source{};
  std::vector<TensorBlueprint> parameters{};
  std::vector<TensorBlueprint> buffers{};
  std::map<std::string, std::int64_t> integers{};
  std::map<std::string, double> numbers{};
  std::vector<ModuleBlueprint> children{};

  /// Adds a child under that name.
  ModuleBlueprint& add(const std::string& child_name, ModuleBlueprint child);
};

/// A whole model: its root module and the specs of the inputs that its `forward` takes.
struct ModelBlueprint {
  ModuleBlueprint root;
  std::vector<std::string> inputs;  ///< one spec an input, as `--input` takes them
};

/// Draws the zoo's model of that name. `sizes` overrides the defaults of its catalog entry.
/// Throws Error (input): no such model or size, a size out of its range, sizes that do not fit each other.
ModelBlueprint draw_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes);

}  // namespace offprof
