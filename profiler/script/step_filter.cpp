#include "profiler/script/step_filter.h"

#include <algorithm>
#include <cstdint>

#include "profiler/recording/program_builder.h"

namespace offprof {
namespace {

bool is_between(std::int64_t count, std::int64_t one, std::int64_t other) {
  return count >= std::min(one, other) && count <= std::max(one, other);
}

}  // namespace

StepFilter::StepFilter(const StepResult& kept) : kept_(kept.recording), counts_(kept.model_counts) {
  for (const RawSaved& saved : kept_.saved) saved_bytes_ += saved.saved.bytes;
}

bool StepFilter::accepts(const StepOrder& order, const StepResult& step) {
  if (!has_same_tensors(step)) return false;
  switch (order.recording) {
    case Recording::kProgram:
      if (!traits_of(order.policy.scheduler).copies_tensors) return same_program(kept_, step.recording);
      if (!same_until_backward(kept_, step.recording)) return false;
      dense_counts_ = step.model_counts;
      return true;
    case Recording::kTimeline:
      return same_until_backward(kept_, step.recording) && has_same_counts(order, step);
    case Recording::kNone:
    case Recording::kMarks:
      return has_same_counts(order, step);
  }
  return false;
}

bool StepFilter::has_same_tensors(const StepResult& step) const {
  std::int64_t tensors = 0;
  Bytes bytes = 0;
  for (const auto& [key, entry] : step.ledger) {
    tensors += entry.tensors;
    bytes += entry.bytes;
  }
  return tensors == std::ssize(kept_.saved) && bytes == saved_bytes_;
}

/// Only some of the tensors may have been brought back densely.
bool StepFilter::has_same_counts(const StepOrder& order, const StepResult& step) const {
  const bool may_be_dense = traits_of(order.policy.scheduler).copies_tensors && dense_counts_;
  const DeviceCounts& other = may_be_dense ? *dense_counts_ : counts_;
  const DeviceCounts& counts = step.model_counts;
  return is_between(counts.allocations, counts_.allocations, other.allocations) &&
         is_between(counts.commands, counts_.commands, other.commands);
}

}  // namespace offprof
