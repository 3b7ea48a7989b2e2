#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/model/parameter_settings.h"
#include "traces/model/slice_settings.h"

namespace offprof {

/// The settings of a run that change its step, so that each needs a recording of its own.
struct Configuration {
  std::vector<std::string> checkpointed{};  ///< paths or patterns of modules (RunSettings::checkpointed)
  std::optional<SliceSettings> slices{};
  std::optional<ParameterSettings> parameters{};
  /// PyTorch's caching allocator runs with `expandable_segments:True`.
  bool expands_segments = false;
  /// Batch or sequence length, whichever the advice is about; nullopt: the program's own.
  std::optional<std::int64_t> size{};

  bool operator==(const Configuration&) const = default;
};

}  // namespace offprof
