#pragma once

#include <functional>
#include <string>

#include "cli/gate/gate_config.h"
#include "traces/analysis/figures.h"

namespace offprof {

/// Returns the figures of a job: of its trace, or of a run of this executable, which records the model.
/// Throws Error (input, or environment if the run ended so) with the run's reason if it failed, and
/// EndedBySignal if it was interrupted.
StepSummary figures_of_job(const GateJob& job);

}  // namespace offprof
