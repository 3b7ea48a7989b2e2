#include "profiler/script/step_filter.h"

#include <algorithm>
#include <cstdint>
#include <type_traits>
#include <utility>
#include <variant>

#include "profiler/recording/program_builder.h"

namespace offprof {
namespace {

/// Returns the number of allocations of the model: those of the engine are made in its hooks.
std::int64_t model_allocations(const RecordedPass& pass) {
  std::int64_t allocations = 0;
  int hooks = 0;
  for (const RawEvent& event : pass.events) {
    hooks += event.kind == RawKind::kHookBegin ? 1 : event.kind == RawKind::kHookEnd ? -1 : 0;
    if (event.kind == RawKind::kAlloc && hooks == 0) ++allocations;
  }
  return allocations;
}

/// More allocations than a step makes.
constexpr std::int64_t kUnlimited = INT64_MAX / 2;

/// Bounds on the number of allocations of the engine.
struct EngineAllocations {
  std::int64_t least = 0, most = 0;
};

EngineAllocations engine_allocations(const std::vector<Command>& commands) {
  EngineAllocations allocations;
  const auto add = [&](const auto& command) {
    using Each = std::decay_t<decltype(command)>;
    // A copy in allocates nothing if it has no bytes. A copy out stages a tensor that is not dense.
    if constexpr (OneOf<Each, CopyIn, CopyOut>) ++allocations.most;
    return !OneOf<Each, Encode, Decode, Recompute>;  // they run operators
  };
  for (const Command& command : commands)
    if (!std::visit(add, command)) return {0, kUnlimited};
  return allocations;
}

}  // namespace

StepFilter::StepFilter(RecordedPass kept) : kept_(std::move(kept)), allocations_(model_allocations(kept_)) {
  for (const RawSaved& saved : kept_.saved) saved_bytes_ += saved.saved.bytes;
}

bool StepFilter::accepts(const StepOrder& order, const StepResult& step) {
  if (!has_same_tensors(step)) return false;
  switch (order.recording) {
    case Recording::kProgram:
      if (!traits_of(order.policy.scheduler).copies_tensors) return same_program(kept_, step.recording);
      if (!same_until_backward(kept_, step.recording)) return false;
      dense_allocations_ = model_allocations(step.recording);
      return true;
    case Recording::kTimeline:
      return same_until_backward(kept_, step.recording);
    case Recording::kNone:
    case Recording::kMarks:
      return has_same_allocations(order, step);
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

bool StepFilter::has_same_allocations(const StepOrder& order, const StepResult& step) const {
  auto [least, most] = engine_allocations(step.commands);
  if (order.listener != nullptr)
    most = kUnlimited;  // it may run operators, as a search for recompute steps does
  const auto fits = [&, least = least, most = most](std::int64_t of_model) {
    return step.allocations >= of_model + least && step.allocations <= of_model + most;
  };
  if (fits(allocations_)) return true;
  return traits_of(order.policy.scheduler).copies_tensors && dense_allocations_ && fits(*dense_allocations_);
}

}  // namespace offprof
