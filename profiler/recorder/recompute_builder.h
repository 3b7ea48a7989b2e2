#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "engine/recompute/recompute.h"
#include "profiler/recorder/operator_notes.h"
#include "traces/model/recomputation.h"

namespace offprof {

/// Longest sequence of operators that is worth recomputing.
inline constexpr std::size_t kMostRecomputeSteps = 8;

/// Recompute steps that were found in a step, and tried.
struct FoundRecomputation {
  Recomputation recomputation;
  ExecutableRecomputation executable;
  std::int32_t own_save = -1;  ///< NotedResult::own_save of the recomputed result
};

/// Returns a text of the recompute steps: operators, arguments, random draws. Equal texts recompute the same.
/// It has the recomputed result's own_save too, which tells it from other results while the operator runs.
std::string text_of_steps(const FoundRecomputation& found);

/// Builds the steps that recompute a content from data that is available in backward.
class RecomputeBuilder {
 public:
  /// Returns the available saved tensor with the argument's content; -1: there is none.
  using SourceOf = std::function<SavedId(const NotedArgument&)>;

  RecomputeBuilder(SavedId tensor, SourceOf source_of);

  /// Returns the steps that compute the result, without their cost; nullopt: it cannot be recomputed. Call it
  /// once.
  std::optional<FoundRecomputation> build(const NotedResult& result);

 private:
  std::int32_t step_of(const NotedResult& result);
  std::optional<RecomputeArgument> argument_for(const NotedArgument& argument);
  bool changes_only_its_own() const;

  SourceOf source_of_;
  FoundRecomputation found_;
  std::size_t begun_ = 0;
  std::map<const NotedResult*, std::int32_t> steps_;
  std::vector<std::int32_t> changed_;  ///< steps whose result a later one changes
};

}  // namespace offprof
