#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace offprof {

/// A configurable size of a zoo model: `--batch 16`.
struct ZooSize {
  std::string name;        ///< `batch`, `layers`, `width`, ...
  std::int64_t value = 0;  ///< the default
  std::int64_t min = 1;
  std::int64_t max = 1;
  std::string what;
};

/// A named set of sizes of a model: `--preset 7b`.
struct ZooPreset {
  std::string name;
  std::map<std::string, std::int64_t> sizes;
};

/// Description of a model that offprof can make without Python. engine/models/archives/build.h builds the
/// model.
struct ZooModel {
  std::string name;
  std::string what;
  std::vector<ZooSize> sizes;
  std::vector<ZooPreset> presets{};
};

/// Settings of a model's parameters.
struct ZooWeights {
  std::string dtype = "float32";  ///< of parameters, buffers, and inputs that are not integers
  /// Makes meta parameters: each stores one element, seen at all places with strides of 0. The archive and
  /// the loaded model take almost no space. All elements are equal, so results are useful for memory, not for
  /// numbers.
  bool meta = false;
};

/// Returns the supported dtypes of parameters, the default first.
const std::vector<std::string>& zoo_dtypes();

/// Returns every model, in the order of lists.
const std::vector<ZooModel>& zoo_models();

/// Returns the model with that name. Throws Error (input) with the known names and the nearest one.
const ZooModel& find_zoo_model(const std::string& name);

/// Returns the sizes of the model's preset with that name. Throws Error (input) with the model's presets.
const std::map<std::string, std::int64_t>& zoo_preset_sizes(const ZooModel& model, const std::string& preset);

/// Throws Error (input), with the known dtypes and the nearest one, for an unknown dtype.
void check_zoo_dtype(const std::string& dtype);

}  // namespace offprof
