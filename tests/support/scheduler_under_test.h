#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "tests/support/recording_executor.h"
#include "traces/model/policy.h"

namespace offprof {

/// Returns a request for a movable tensor that fills storage `storage`. For tests.
inline PackRequest whole_storage(std::int64_t storage, Bytes bytes, std::uint32_t version = 0) {
  return {storage, version, bytes, bytes, Movability::kMovable, false};
}

/// Scheduler with a recording executor. Each call returns the commands that it caused. For tests.
class SchedulerUnderTest {
 public:
  explicit SchedulerUnderTest(const Policy& policy, std::vector<SavedId> backward_order = {})
      : backward_order_(std::move(backward_order)),
        scheduler_(make_scheduler(policy, backward_order_, executor_)) {}
  SchedulerUnderTest(const SchedulerUnderTest&) = delete;
  SchedulerUnderTest& operator=(const SchedulerUnderTest&) = delete;

  std::string pack(const PackRequest& request, const RuledPlacement& rule = {}) {
    last_decision_ = scheduler_->pack(next_tensor_++, request, rule);
    return executor_.take_short_log();
  }
  /// Packs a tensor that has its own storage.
  std::string pack(Bytes bytes) { return pack(whole_storage(kOwnStorages + next_tensor_, bytes)); }
  /// Packs `count` such tensors and drops their commands.
  void pack_many(int count, Bytes bytes) {
    for (int i = 0; i < count; ++i) pack(bytes);
  }
  std::string unpack(SavedId tensor) {
    scheduler_->unpack(tensor);
    return executor_.take_short_log();
  }
  std::string release(SavedId tensor) {
    scheduler_->release(tensor);
    return executor_.take_short_log();
  }
  std::string node_end(const std::vector<SavedId>& tensors, const std::vector<SavedId>& escaped = {}) {
    scheduler_->node_end(tensors, escaped);
    return executor_.take_short_log();
  }
  std::string backward_end() {
    scheduler_->backward_end();
    return executor_.take_short_log();
  }

  /// Acts like a device that has no memory for the next `count` copies in.
  void refuse_next(int count) { executor_.refuse_next(count); }

  /// Decision of the last pack.
  const PackDecision& decision() const { return last_decision_; }
  const std::vector<Command>& commands() const { return executor_.commands(); }
  const Scheduler& scheduler() const { return *scheduler_; }

 private:
  static constexpr std::int64_t kOwnStorages = 1000;  ///< tests that name storages use smaller numbers

  RecordingExecutor executor_;
  std::vector<SavedId> backward_order_;
  std::unique_ptr<Scheduler> scheduler_;
  SavedId next_tensor_ = 0;
  PackDecision last_decision_;
};

}  // namespace offprof
