#pragma once

#include <vector>

#include "engine/devices/device.h"
#include "engine/devices/link_calibration.h"
#include "profiler/calibration/cost_calibration.h"
#include "profiler/recording/step_mark.h"
#include "profiler/steps/step_budget.h"
#include "profiler/steps/step_script.h"

namespace offprof {

/// Result of a calibration in few steps.
struct BriefCalibration {
  StepCalibration step;
  std::vector<StepMarks> marks;  ///< of the marked steps
};

/// Measures what `calibrate` measures, in the few steps of `steps`, by several measurements in each:
///
/// - Plain steps give the times of the step and of its phases.
/// - Marked steps give the times of each stretch from one hook (a pack or an unpack) to the next. Without
///   plain steps they give those of the step and its phases too.
/// - A disturbed step consists of blocks of hooks. In turn, one block has concurrent copies, the next short
///   standstills, and the next a long one (standstills only if the host computes). The loss of a block is
///   its time beyond that of the same stretches in the marked steps. Blocks of one kind form a few samples,
///   so that the result has a spread.
///
/// `copies` is of the same device, and `backward_order` is that of a StepGuide. `device` must outlive the
/// script.
StepScript<BriefCalibration> calibrate_briefly(Device& device, CopyCalibration copies, CalibrationSteps steps,
                                               std::vector<SavedId> backward_order);

}  // namespace offprof
