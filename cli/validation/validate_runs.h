#pragma once

#include <cstddef>

#include "cli/reports/validate_report.h"
#include "profiler/plugin/plugin.h"
#include "traces/model/link.h"
#include "traces/model/trace.h"

namespace offprof {

/// Returns the trace as if its run had been a visit of a comparison: with no cap of --device-memory, and with
/// as many steps in a row as a visit has if device memory depends on that number.
Trace as_visited(Trace trace);

/// The runs that `validate` requests from the engine.
struct ValidationRuns {
  Comparison comparison;
  std::size_t left_out = 0;  ///< settings that do not fit into the device's memory
  /// Settings left out because the trace has no step program for them: see TraceSteps::has_program_of.
  std::size_t inexact = 0;
};

/// Chooses `policies` settings that span the space of policies, and adds the rules whose costs the trace has
/// measured (ruled_policies); rules with a disk only if there is a `disk`. Leaves out settings for which the
/// trace has no step program, and those that do not fit into the memory of the device of `trace`. `trace`
/// must come from as_visited, or be that of a script without a cap of --device-memory. The setting that
/// determines the drift is visited several times per round. A visit has more timed steps if they are
/// predicted to be short. Throws Error (environment) if no setting fits.
ValidationRuns choose_runs(const Trace& trace, const Link& link, std::size_t policies, int rounds,
                           std::optional<Place> disk = {});

/// How the settings were run.
enum class ValidationMethod {
  kInterleaved,  ///< in one process, in rounds
  kOneByOne,     ///< each once, in a process of its own: measured times are not comparable, modelled ones are
};

/// Compares predictions from `trace`, which must come from as_visited, with the measurements in `result`,
/// made in `rounds` rounds over `link`. The machine's drift is derived from a step with nothing offloaded if
/// such a step was run, the device's times are measured, and there are other settings to judge. The judged
/// predictions then have their compute scaled by the drift, and that step itself is not judged. Runs made
/// kOneByOne need no trace from as_visited, and their measured times are not compared. Throws Error
/// (environment) if the device had no memory for any setting.
ValidationReport judge_runs(Trace trace, const Link& link, const ComparisonResult& result, int rounds,
                            ValidationMethod method = ValidationMethod::kInterleaved);

}  // namespace offprof
