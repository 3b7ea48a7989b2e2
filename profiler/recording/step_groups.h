#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include "profiler/plugin/script_io.h"
#include "profiler/recording/step_result.h"

namespace offprof {

/// Choice of the steps to record, if the steps of a program differ.
struct ShapeChoice {
  bool is_largest = false;  ///< the steps with the highest peak
  std::int64_t rank = 1;    ///< else those of the rank-th most frequent kind
};

/// Parses `most-frequent`, `largest` or a rank. Throws Error (input).
ShapeChoice parse_shape(const std::string& text);

/// Groups steps by their step programs, and chooses the group to record. All steps are recorded with nothing
/// offloaded.
class StepGroups {
 public:
  /// The chosen group needs `wanted` steps.
  StepGroups(ShapeChoice choice, int wanted) : choice_(choice), wanted_(wanted) {}

  void add(StepResult step);
  /// Chooses the group and returns its first `wanted` steps, once they are there. The most frequent group is
  /// the first that has them. Other choices are made after kObservedSteps.
  std::optional<std::vector<StepResult>> choose();

  std::int64_t steps() const { return steps_; }
  /// Describes the groups, the most frequent first.
  std::vector<StepGroup> summary() const;
  /// Returns true if not all steps saved as many tensors of the device with as many bytes, or if one of
  /// another kind than the chosen one allocates a large block, and frees it, of a size that the chosen one
  /// does not. A step in which torch.compile compiles also saves tensors without memory.
  bool differ_in_shapes() const;

 private:
  struct Group {
    StepGroup about;
    std::pair<std::int64_t, Bytes> saved_on_device{};  ///< tensors and their bytes
    std::set<Bytes> large_blocks;                      ///< sizes of blocks: see differ_in_shapes
    std::vector<StepResult> steps;                     ///< the first ones
  };

  std::optional<std::size_t> candidate() const;
  std::vector<std::size_t> by_frequency() const;

  ShapeChoice choice_;
  int wanted_;
  std::vector<Group> groups_;
  std::int64_t steps_ = 0;
};

/// Number of steps that are observed before the largest, or one of a rank, is chosen.
inline constexpr std::int64_t kObservedSteps = 20;

}  // namespace offprof
