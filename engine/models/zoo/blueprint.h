#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace offprof {

/// Initial values of a model's tensor: uniformly distributed around `mean`, with the given standard
/// deviation.
struct TensorBlueprint {
  std::string name;
  std::vector<std::int64_t> shape;
  double mean = 0;
  double deviation = 0;  ///< 0: every element is `mean`
};

/// Description of a TorchScript module: its contents, and the source of its methods. build.h builds the
/// module. The source may call builtin `torch.*` operators and the children's methods
/// (`self.norm.forward(x)`); every module also has the attribute `training`.
struct ModuleBlueprint {
  std::string type{};  ///< class name, `Linear`
  std::string name{};  ///< name in its parent
  std::string source{};
  std::vector<TensorBlueprint> parameters{};
  std::vector<TensorBlueprint> buffers{};
  std::map<std::string, std::int64_t> integers{};
  std::map<std::string, double> numbers{};
  std::vector<ModuleBlueprint> children{};

  /// Adds a child with that name.
  ModuleBlueprint& add(const std::string& child_name, ModuleBlueprint child);
};

/// A whole model: its root module and the specs of the inputs of its `forward`.
struct ModelBlueprint {
  ModuleBlueprint root;
  std::vector<std::string> inputs;  ///< one spec per input, in the format of `--input`
};

/// Describes the zoo model with that name. `sizes` overrides the defaults of its catalog entry. Throws Error
/// (input) for an unknown model or size, a size out of its range, and sizes that do not fit each other.
ModelBlueprint draw_zoo_model(const std::string& name, const std::map<std::string, std::int64_t>& sizes);

}  // namespace offprof
