#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/analysis/figures.h"

namespace offprof {

/// One figure on both sides; absent on a side that lacks it.
struct MetricDifference {
  std::string key;
  MetricUnit unit = MetricUnit::kBytes;
  std::optional<double> base{};
  std::optional<double> now{};

  /// Returns now - base; nullopt unless both sides have the figure.
  std::optional<double> difference() const;
  /// Returns the difference in percent of the base. nullopt if a side lacks the figure, or if the base is 0
  /// and the figure changed.
  std::optional<double> percent() const;
};

/// Saved bytes of one operator on both sides.
struct OpDifference {
  std::string op;
  LedgerEntry base;
  LedgerEntry now;
  Bytes difference() const { return now.bytes - base.bytes; }
};

/// Differences between two runs.
struct Diff {
  std::string base_source;
  std::string now_source;
  bool base_times_are_modelled = false;
  bool now_times_are_modelled = false;
  std::vector<MetricDifference> metrics{};  ///< figures of either side, in the order of metric_keys()
  std::vector<RunDifference> run{};
  std::vector<OpDifference> ops{};  ///< operators that differ, the largest difference first
};

Diff compare(const StepSummary& base, const StepSummary& now);

/// Returns the operators that saved different bytes, the largest difference first. Empty if a side does not
/// list its operators.
std::vector<OpDifference> op_differences(const StepSummary& base, const StepSummary& now);

}  // namespace offprof
