#pragma once

#include <cstdint>
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

/// A model that offprof can make with no Python. What is here is the description; engine/zoo/build.h makes
/// it.
struct ZooModel {
  std::string name;
  std::string what;
  std::vector<ZooSize> sizes;
};

/// Every model, in the order in which they are listed.
const std::vector<ZooModel>& zoo_models();

/// The model of that name. Throws Error (input) with the names there are and the nearest one.
const ZooModel& find_zoo_model(const std::string& name);

}  // namespace offprof
