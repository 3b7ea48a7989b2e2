#pragma once

#include <cstddef>

#include "cli/validate_report.h"
#include "engine/plugin.h"
#include "traces/link.h"
#include "traces/trace.h"

namespace offprof {

/// The trace as if its run had been a visit of a comparison: as many steps in a row as a visit has where the
/// device's memory depends on it, and no cap of --device-memory.
Trace as_visited(Trace trace);

/// What `validate` has the engine run.
struct ValidationRuns {
  Comparison comparison;
  std::size_t left_out = 0;  ///< settings that do not fit into the device's memory
  std::size_t inexact =
      0;  ///< settings left out since the trace has no program of them: TraceSteps::inexactness
};

/// `policies` settings that span what a policy can be, less those of which the trace has no program, and
/// those that do not fit into the memory of the device of `trace`, which is as_visited. The drift's setting
/// is visited several times a round; a visit has more timed steps where they are predicted to be short.
/// With the rules that the trace has measured what they take of (ruled_policies), those with a disk where
/// there is a `disk`. Throws Error (environment): none of them fits.
ValidationRuns choose_runs(const Trace& trace, const Link& link, std::size_t policies, int rounds,
                           std::optional<Place> disk = {});

/// Predicts from `trace`, which is as_visited, what `result` measured in so many rounds over `link`, and
/// holds the two against each other. A step with nothing offloaded, where it was run, where the device's
/// times are measured and where there is anything else to judge, is taken for the machine's drift: the
/// predictions that are judged have all compute that much longer, and that step is not judged itself.
/// Throws Error (environment): the device had no memory for any of them.
ValidationReport judge_runs(Trace trace, const Link& link, const ComparisonResult& result, int rounds);

}  // namespace offprof
