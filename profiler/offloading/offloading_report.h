#pragma once

#include <cstdint>
#include <optional>
#include <string>

#include "traces/model/ledger.h"
#include "traces/model/metrics.h"
#include "traces/model/policy.h"

namespace offprof {

/// Figures of the steps of a program under ProgramOffloading.
struct OffloadingReport {
  Policy policy;
  /// Figures of the last whole steps under the whole policy: see summarize. nullopt: there was none.
  std::optional<Metrics> measured{};
  std::optional<Metrics> predicted{};     ///< figures that the policy file predicts
  Ledger ledger{};                        ///< of the last whole step
  std::int64_t steps = 0;                 ///< whole steps
  std::int64_t saved_by_other_hooks = 0;  ///< tensors of the process that the program's own hooks took
};

/// Returns the report as a JSON object: `policy` (a description), `measured`, `predicted` (either may be
/// null), `ledger`, `steps`, `saved_by_other_hooks`.
std::string format_offloading_report(const OffloadingReport& report);

}  // namespace offprof
