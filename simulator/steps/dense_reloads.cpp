#include "simulator/steps/dense_reloads.h"

#include <algorithm>
#include <utility>

#include "simulator/steps/views.h"

namespace offprof {

Policy dense_offload_all() {
  Policy policy = preset_policy("trl");
  policy.threshold_bytes = 0;
  policy.stash_count = 0;
  return policy;
}

std::vector<SavedId> reloaded_tensors(const Step& step, const Policy& policy) {
  std::vector<SavedId> tensors;
  for (const Command& command : replay_commands(step, policy))
    if (const auto* const copy = std::get_if<CopyIn>(&command)) tensors.push_back(copy->tensor);
  std::ranges::sort(tensors);
  return tensors;
}

std::vector<SavedId> changed_by_dense_copies(const StepProgram& program, std::vector<SavedId> tensors) {
  std::erase_if(tensors, [&](SavedId tensor) {
    return is_dense(*program.saved[static_cast<std::size_t>(tensor)].layout);
  });
  return tensors;
}

}  // namespace offprof
