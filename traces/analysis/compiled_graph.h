#pragma once

#include "traces/model/step_program.h"

namespace offprof {

/// Returns how much of what can be moved the backward of one compiled graph takes back at once: the largest
/// share, from 0 to 1, of the bytes of movable saved tensors that a node of torch.compile unpacks. They are
/// on the device together then, wherever a policy puts them before.
double share_of_compiled_graph(const StepProgram& program);

}  // namespace offprof
