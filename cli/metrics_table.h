#pragma once

#include <string>
#include <vector>

#include "cli/terminal.h"
#include "traces/metrics.h"

namespace offprof {

/// One column of figures: `measured`, `predicted`.
struct MetricsColumn {
  std::string heading;
  Metrics metrics;
  /// Times are shown in the digits that this leaves of them: see duration_text.
  Nanoseconds times_unsure_by = 0;
};

/// A row per figure that some column has, a column each, and for two columns whether they agree: `equal`, or
/// the difference from the first to the second.
std::string metrics_table(const std::vector<MetricsColumn>& columns, const Page& page);

}  // namespace offprof
