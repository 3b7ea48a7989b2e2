#pragma once

#include <optional>
#include <string>
#include <vector>

#include "profiler/stages/record_program.h"
#include "profiler/steps/step_script.h"
#include "traces/model/calibration.h"
#include "traces/model/link.h"

namespace offprof {

/// Costs of a machine, with which recorded times predict those of steps under any policy.
struct CalibratedTimes {
  Link link;
  std::optional<Calibration> calibration;  ///< nullopt: the link was known, and times are modelled
  std::vector<std::string> notes;
  /// Factor by which the times of recorded steps were scaled, since recording makes steps longer.
  double recorded_scale = 1;
};

/// Measures the costs besides the step program itself, and the program's own time without the cost of
/// recording, which it sets in `recorded`. Both arguments must outlive the script.
/// `offloads_parameters`: steps load parameters from elsewhere.
StepScript<CalibratedTimes> calibrate_times(const StepSource& source, RecordedProgram& recorded,
                                            bool offloads_parameters);

/// Sets the times of the dense program, if there is one. `times` is the result of calibrate_times. The
/// arguments must outlive the script.
StepScript<void> calibrate_dense_times(const StepSource& source, RecordedProgram& recorded,
                                       bool offloads_parameters, CalibratedTimes& times);

}  // namespace offprof
