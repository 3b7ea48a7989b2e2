#pragma once

#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/autograd/residents.h"
#include "engine/devices/device.h"
#include "profiler/plugin/plugin.h"
#include "profiler/recording/recorded_pass.h"
#include "profiler/steps/step_budget.h"
#include "profiler/steps/step_script.h"
#include "traces/model/step_program.h"

namespace offprof {

/// The training steps that are recorded, as recording and calibration see them. Somebody else runs them.
struct StepSource {
  Device& device;
  const Progress& progress;
  /// Returns the tensors that the next step will treat as older than itself.
  std::function<std::shared_ptr<const Residents>()> residents;
  /// Returns the host memory of offloaded parameters; empty: none are offloaded.
  std::function<Bytes()> parameter_host_bytes{};
  StepBudget budget{};
};

/// The step program of a model, and the guide for steps under any policy.
struct RecordedProgram {
  StepProgram program;
  std::optional<StepProgram> dense_program;  ///< see Trace::dense_program
  StepSize step_size{};
  StepGuide guide;            ///< for policies without rules; has the data for rules too
  RecordedPass offload_pass;  ///< with everything offloaded
  /// The last step that was recorded. Storages that steps replace, such as gradients, are found in the
  /// allocator by it, so measured steps follow right after it.
  RecordedPass last_pass;
  std::vector<std::string> notes{};  ///< facts that the predictions depend on
};

/// Records the steps of `source`, which must outlive the script, but for those of record_dense. The warm-up
/// steps are over. Throws Error (input) if the steps are not alike.
StepScript<RecordedProgram> record_program(const StepSource& source, bool finds_recomputations);

/// Records steps with dense copies, after everything else. Sets the dense program if those steps differ from
/// the others. Both arguments must outlive the script. Throws Error (input) if the steps are not alike.
StepScript<void> record_dense(const StepSource& source, RecordedProgram& recorded);

/// Stores in the programs the allocator state in which measured steps begin.
void note_allocator_state(DeviceAllocator& allocator, RecordedProgram& recorded);

}  // namespace offprof
