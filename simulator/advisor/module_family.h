#pragma once

#include <cstddef>
#include <string>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Repeated modules of a model: those whose paths differ in numbers alone, as `layers.0` to `layers.31`.
struct ModuleFamily {
  std::string pattern{};             ///< the paths, with `*` for each number: `layers.*`
  std::vector<std::string> paths{};  ///< in the order in which the modules first save a tensor
  Bytes saved_bytes = 0;             ///< size of the movable storages that they save
  bool has_all_of_pattern = true;    ///< false: the pattern matches modules too that save little
  /// If some of them save much more than others, as in the stages of a ResNet: their numbers, the one that
  /// saves most first. Else empty.
  std::vector<std::size_t> by_size{};

  bool is_even() const { return by_size.empty(); }
};

/// Returns the families of at least two modules that save several movable storages each, the one with most
/// saved bytes first; of equal ones, the outermost first. Leaves out modules that save few storages beside
/// others of their pattern, and families that save the same storages in as many modules as an outer family.
/// Modules are known by the tensors that they save (SavedTensor::module).
std::vector<ModuleFamily> module_families(const StepProgram& program);

/// Which modules of a family are checkpointed.
enum class Chosen {
  kBest,    ///< evenly spread; if the family is uneven, those that save most
  kFirst,   ///< the first ones
  kShifted  ///< evenly spread, by half of a distance later than kBest
};

/// Returns the paths of `count` modules of the family, in their order; the pattern if these are all that it
/// matches. `count` is at most the number of modules.
std::vector<std::string> checkpointed_paths(const ModuleFamily& family, std::size_t count,
                                            Chosen chosen = Chosen::kBest);

/// Returns the name of checkpointing `count` of them: `checkpoint the first 4 of 32 layers.*`.
std::string checkpoint_name(const ModuleFamily& family, std::size_t count, Chosen chosen = Chosen::kBest);

}  // namespace offprof
