#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/schedule/placement_rules.h"
#include "engine/schedule/scheduler.h"
#include "traces/calibration.h"
#include "traces/program.h"

namespace offprof {

/// A Program made ready to be replayed many times: operators folded into the compute time between the events
/// that matter to memory and scheduling, the scheduler's requests built, the backward order read off.
class Step {
 public:
  /// `program` must be consistent, as read_trace and the recorder assure. `costs` are added in replays of a
  /// device that computes on the host.
  /// `profiles`: what transforms take of a policy's rules; they must outlive it.
  explicit Step(const Program& program, EngineCosts costs = {},
                std::span<const TransformProfile> profiles = {});

  /// Program::events without operators and phases. `compute_ns` includes theirs; the time after the last
  /// event is in tail_compute_ns.
  std::span<const Event> events() const { return events_; }
  Nanoseconds tail_compute_ns() const { return tail_compute_ns_; }
  /// Likewise Program::work, with one more part for the time after the last event; empty: not known.
  std::span<const Work> work() const { return work_; }
  Nanoseconds compute_ns() const { return compute_ns_; }

  const EngineCosts& costs() const { return costs_; }
  void set_costs(EngineCosts costs) { costs_ = std::move(costs); }
  /// What is fetched of weights comes from the disk beside the device, and what is saved goes there.
  bool weights_are_on_disk() const { return weights_are_on_disk_; }
  void set_weights_are_on_disk(bool on_disk) { weights_are_on_disk_ = on_disk; }
  /// No policy copies more in one direction.
  double most_copied_bytes() const { return most_copied_bytes_; }

  /// By saved tensor.
  std::span<const PackRequest> requests() const { return requests_; }
  bool escapes(SavedId tensor) const { return escapes_[tensor]; }
  /// By storage index.
  std::span<const Bytes> storage_bytes() const { return storage_bytes_; }
  /// Storages that are there before the step begins; their bytes are in resident_bytes.
  std::span<const std::int32_t> residents() const { return residents_; }
  Bytes resident_bytes() const { return resident_bytes_; }
  /// Where tensors are copied densely, what the copy out of this one takes of a CUDA device while it lasts:
  /// its bytes, unless it lies densely itself. 0 on other devices.
  Bytes staging_bytes(SavedId tensor) const { return staging_bytes_.empty() ? 0 : staging_bytes_[tensor]; }
  /// Likewise what that takes of the copy's stream, where it is known.
  Work staging_work(SavedId tensor) const { return staging_work_.empty() ? Work{} : staging_work_[tensor]; }
  /// Of a CUDA device: see Program::allocator.
  const std::optional<AllocatorState>& allocator() const { return allocator_; }
  /// What the policy's rules make of the saved tensors: see choose_placements.
  Placements place(const Policy& policy) const;
  /// Saved tensors in the order in which backward first asks for them.
  std::span<const SavedId> backward_order() const { return backward_order_; }
  /// For each of events(), its index in Program::events.
  std::span<const std::int32_t> program_index() const { return program_index_; }

 private:
  void add_events(const Program& program);
  void add_requests(const Program& program);
  std::int32_t add_storage_without_bytes();

  EngineCosts costs_;
  bool weights_are_on_disk_ = false;
  std::vector<Event> events_;
  std::vector<std::int32_t> program_index_;
  std::vector<Work> work_;
  Nanoseconds tail_compute_ns_ = 0;
  Nanoseconds compute_ns_ = 0;
  std::vector<PackRequest> requests_;
  std::vector<char> escapes_;
  std::vector<Bytes> storage_bytes_;
  std::vector<std::int32_t> residents_;
  Bytes resident_bytes_ = 0;
  double most_copied_bytes_ = 0;
  std::vector<Bytes> staging_bytes_;  ///< empty where it is 0 for all, as is the next
  std::vector<Work> staging_work_;
  std::optional<AllocatorState> allocator_;
  std::vector<SavedId> backward_order_;
  std::shared_ptr<const Program> rule_subjects_;  ///< of the program what rules go by
  std::span<const TransformProfile> profiles_;
};

}  // namespace offprof
