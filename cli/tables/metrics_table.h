#pragma once

#include <string>
#include <vector>

#include "cli/terminal/terminal.h"
#include "traces/model/metrics.h"

namespace offprof {

/// One column of figures, for example `measured` or `predicted`.
struct MetricsColumn {
  std::string heading;
  Metrics metrics;
  /// Uncertainty of the times; uncertain digits are not shown (see duration_text).
  Nanoseconds times_unsure_by = 0;
};

/// Returns a table with one row per figure that is present in any column. With two columns, a further one
/// shows whether they agree: `equal`, or the difference from the first to the second.
std::string metrics_table(const std::vector<MetricsColumn>& columns, const Page& page);

}  // namespace offprof
