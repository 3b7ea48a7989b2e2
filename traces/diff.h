#pragma once

#include <optional>
#include <string>
#include <vector>

#include "traces/figures.h"

namespace offprof {

/// One figure on both sides; absent where a side does not have it.
struct MetricDifference {
  std::string key;
  MetricUnit unit = MetricUnit::kBytes;
  std::optional<double> base{};
  std::optional<double> now{};

  /// now - base; absent unless both are there.
  std::optional<double> difference() const;
  /// Of the base, in percent; absent where the base is 0 too, unless nothing changed.
  std::optional<double> percent() const;
};

/// What one operator saved on both sides.
struct OpDifference {
  std::string op;
  LedgerEntry base;
  LedgerEntry now;
  Bytes difference() const { return now.bytes - base.bytes; }
};

/// What changed from one run to another.
struct Diff {
  std::string base_source;
  std::string now_source;
  bool base_times_are_modelled = false;
  bool now_times_are_modelled = false;
  std::vector<MetricDifference> metrics{};  ///< those that either side has, in the order of metric_keys()
  std::vector<RunDifference> run{};
  std::vector<OpDifference> ops{};  ///< those that differ, the largest difference first
};

Diff compare(const Figures& base, const Figures& now);

/// What the operators saved differently, the largest difference in bytes first. Empty where a side does not
/// tell.
std::vector<OpDifference> op_differences(const Figures& base, const Figures& now);

}  // namespace offprof
