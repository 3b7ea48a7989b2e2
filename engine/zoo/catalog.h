#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <vector>

namespace offprof {

/// A size of a zoo model that can be set: `--batch 16`.
struct ZooSize {
  std::string name;        ///< `batch`, `layers`, `width`, ...
  std::int64_t value = 0;  ///< the default
  std::int64_t min = 1;
  std::int64_t max = 1;
  std::string what;
};

/// Sizes of a model that go by a name: `--preset 7b`.
struct ZooPreset {
  std::string name;
  std::map<std::string, std::int64_t> sizes;
};

/// A model that offprof can make with no Python. What is here is the description; engine/zoo/build.h makes
/// it.
struct ZooModel {
  std::string name;
  std::string what;
  std::vector<ZooSize> sizes;
  std::vector<ZooPreset> presets{};
};

/// How a model's weights are made.
struct ZooWeights {
  std::string dtype = "float32";  ///< of parameters and buffers, and of inputs that are no integers
  /// Every weight is one stored element, seen at all its places with strides of 0: the archive takes next to
  /// no room, and so does the model when it is loaded. All elements are the same: good for memory, not for
  /// numbers.
  bool weightless = false;
};

/// The dtypes that weights can have, the default first.
const std::vector<std::string>& zoo_dtypes();

/// Every model, in the order in which they are listed.
const std::vector<ZooModel>& zoo_models();

/// The model of that name. Throws Error (input) with the names there are and the nearest one.
const ZooModel& find_zoo_model(const std::string& name);

/// The sizes of the model's preset of that name. Throws Error (input) with the presets that the model has.
const std::map<std::string, std::int64_t>& zoo_preset_sizes(const ZooModel& model, const std::string& preset);

/// Throws Error (input) with the dtypes there are and the nearest one.
void check_zoo_dtype(const std::string& dtype);

}  // namespace offprof
