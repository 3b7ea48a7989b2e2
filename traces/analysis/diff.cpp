#include "traces/analysis/diff.h"

#include <algorithm>
#include <cstdlib>

namespace offprof {

std::optional<double> MetricDifference::difference() const {
  if (!base || !now) return std::nullopt;
  return *now - *base;
}

std::optional<double> MetricDifference::percent() const {
  const auto change = difference();
  if (!change) return std::nullopt;
  if (*change == 0) return 0.0;
  if (*base == 0) return std::nullopt;
  return 100.0 * *change / *base;
}

std::vector<OpDifference> op_differences(const StepSummary& base, const StepSummary& now) {
  if (base.saved_by_op.empty() || now.saved_by_op.empty()) return {};
  std::map<std::string, OpDifference> by_op;
  for (const auto& [op, entry] : base.saved_by_op) by_op[op].base = entry;
  for (const auto& [op, entry] : now.saved_by_op) by_op[op].now = entry;
  std::vector<OpDifference> differences;
  for (auto& [op, difference] : by_op) {
    if (difference.base == difference.now) continue;
    difference.op = op;
    differences.push_back(std::move(difference));
  }
  const auto largest_first = [](const OpDifference& a, const OpDifference& b) {
    return std::abs(a.difference()) > std::abs(b.difference());
  };
  std::ranges::stable_sort(differences, largest_first);
  return differences;
}

Diff compare(const StepSummary& base, const StepSummary& now) {
  Diff diff{.base_source = base.source,
            .now_source = now.source,
            .base_times_are_modelled = base.times_are_modelled,
            .now_times_are_modelled = now.times_are_modelled};
  for (const MetricKey& key : metric_keys()) {
    MetricDifference metric{std::string(key.name), key.unit, key.get(base.metrics), key.get(now.metrics)};
    if (metric.base || metric.now) diff.metrics.push_back(std::move(metric));
  }
  diff.run = run_differences(base, now);
  diff.ops = op_differences(base, now);
  return diff;
}

}  // namespace offprof
