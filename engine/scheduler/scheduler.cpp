#include "engine/scheduler/scheduler.h"

#include "engine/scheduler/offload_scheduler.h"
#include "engine/scheduler/trl_scheduler.h"
#include "traces/base/check.h"

namespace offprof {

std::unique_ptr<Scheduler> make_scheduler(const Policy& policy, std::span<const SavedId> backward_order,
                                          Executor& executor) {
  switch (policy.scheduler) {
    case SchedulerKind::kOffload:
      return std::make_unique<OffloadScheduler>(policy, backward_order, executor);
    case SchedulerKind::kTrl:
      return std::make_unique<TrlScheduler>(policy, executor);
  }
  OFFPROF_CHECK(false);
}

PlacementReason reason_of(Movability movability) {
  switch (movability) {
    case Movability::kMovable:
      break;
    case Movability::kParameter:
      return PlacementReason::kParameter;
    case Movability::kBuffer:
      return PlacementReason::kBuffer;
    case Movability::kInput:
      return PlacementReason::kInput;
    case Movability::kResident:
      return PlacementReason::kResident;
    case Movability::kEmpty:
      return PlacementReason::kEmpty;
    case Movability::kUnsupportedLayout:
      return PlacementReason::kUnsupportedLayout;
    case Movability::kParameterGroup:
      return PlacementReason::kParameterGroup;
    case Movability::kUnpacked:
      return PlacementReason::kUnpacked;
  }
  OFFPROF_CHECK(false);
}

}  // namespace offprof
