#pragma once

#include <string>

#include "simulator/report/step_record.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Returns a snapshot of device memory in the format of torch.cuda.memory._dump_snapshot (a pickle), which
/// PyTorch's memory visualizer opens: the allocations and frees of a replayed step, and the memory at its
/// end. Segments and addresses are those of the model of the caching allocator; on a device without such an
/// allocator, those that it would choose from an empty cache. Frames name the operator, the source line and
/// the module. `record` must be made from `program`.
std::string memory_snapshot(const StepProgram& program, const StepRecord& record);

}  // namespace offprof
