#pragma once

#include <algorithm>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <utility>
#include <vector>

#include "engine/scheduler/placement_rules.h"
#include "engine/scheduler/scheduler.h"
#include "traces/model/calibration.h"
#include "traces/model/step_program.h"

namespace offprof {

/// A step program prepared for many replays. Operators are folded into the compute time between the events
/// that matter to memory and scheduling. The scheduler's requests and the backward order are computed once.
class Step {
 public:
  /// Prepares `program`, which must be consistent; read_trace and the recorder ensure that. `costs` are the
  /// engine's costs that replays add. `profiles` hold the costs of the transforms in a policy's rules; they
  /// must outlive the step.
  explicit Step(const StepProgram& program, EngineCosts costs = {},
                std::span<const TransformProfile> profiles = {});

  /// Returns Program::events without operators and phases. `compute_ns` includes their times; the time after
  /// the last event is in tail_compute_ns.
  std::span<const Event> events() const { return events_; }
  Nanoseconds tail_compute_ns() const { return tail_compute_ns_; }
  /// Returns Program::work in the same way, with one more part for the time after the last event; empty: not
  /// known. Includes the work between commands of StreamWork, but not these.
  std::span<const Work> work() const { return work_; }
  /// Commands of the program before an event of events(), or after the last one.
  struct StreamWork {
    std::size_t event = 0;
    std::vector<StreamCommand> commands;
    Work after;  ///< the event's work after the last of them
  };
  /// Returns those before the event with that index; nullptr: none.
  const StreamWork* stream_work(std::size_t event) const;
  Nanoseconds compute_ns() const { return compute_ns_; }

  const EngineCosts& costs() const { return costs_; }
  void set_costs(EngineCosts costs) { costs_ = std::move(costs); }
  /// Returns true if offloaded parameters are on the disk: loads read them from there, saves write them
  /// there.
  bool parameters_are_on_disk() const { return parameters_are_on_disk_; }
  void set_parameters_are_on_disk(bool on_disk) { parameters_are_on_disk_ = on_disk; }
  /// Upper bound on the bytes that any policy copies in one direction.
  double most_copied_bytes() const { return most_copied_bytes_; }
  /// Returns the same of copies, apart from those of parameters.
  std::size_t most_copies() const { return requests_.size() + program_copies_; }
  /// Returns true if copies that a policy requests earlier may delay the program
  /// (StreamCommand::meets_copies).
  bool meets_copies() const { return meets_copies_; }

  /// The scheduler's request for each saved tensor.
  std::span<const PackRequest> requests() const { return requests_; }
  bool escapes(SavedId tensor) const { return escapes_[tensor]; }
  /// Size of each storage, by storage index.
  std::span<const Bytes> storage_bytes() const { return storage_bytes_; }
  /// Returns the stream of the caching allocator's pool for the storage, which may also be one that the
  /// engine adds: see ProgramStorage::stream.
  std::int32_t stream_of(std::int32_t storage) const {
    return static_cast<std::size_t>(storage) < streams_.size() ? streams_[storage] : kComputeStream;
  }
  /// Returns what has to be reached before the storage is free: see StepProgram::free_points.
  std::span<const FreePoint> free_points_of(std::int32_t storage) const;
  /// See offprof::Renewal.
  struct StepRenewal {
    std::int32_t old_storage = 0, new_storage = 0;
    bool has_tensors = false;  ///< saved tensors that the step does not release view the new storage
    bool is_programs = false;  ///< the program holds the new storage at the end of the step
  };
  /// See Renewal::let_go: the program drops its old storage before an event.
  struct LetGo {
    std::size_t event = 0;  ///< index in events()
    std::int32_t storage = 0;
  };
  std::span<const StepRenewal> renewals() const { return renewals_; }
  /// Returns those before the event with that index.
  std::span<const LetGo> let_goes(std::size_t event) const;
  /// Returns true if the step leaves movable saved tensors to the next one, which begins with them where the
  /// policy has put them: on the device or in host memory.
  bool carries_tensors() const { return carries_tensors_; }
  /// Storages that exist before the step begins; resident_bytes includes their sizes.
  std::span<const std::int32_t> residents() const { return residents_; }
  Bytes resident_bytes() const { return resident_bytes_; }
  bool is_resident(std::int32_t storage) const { return std::ranges::binary_search(residents_, storage); }
  /// Returns true if the step allocates the storage for parameters that it gathers or loads.
  bool holds_parameters(std::int32_t storage) const {
    return std::ranges::binary_search(parameters_, storage);
  }
  /// Returns the temporary device memory of a dense copy out of this tensor, on a CUDA device: the tensor's
  /// bytes, or 0 if the tensor itself is dense. 0 on other devices.
  Bytes staging_bytes(SavedId tensor) const { return staging_bytes_.empty() ? 0 : staging_bytes_[tensor]; }
  /// Returns the work of that dense copy on the copy's stream, if it is known.
  Work staging_work(SavedId tensor) const { return staging_work_.empty() ? Work{} : staging_work_[tensor]; }
  /// State of the caching allocator, for CUDA devices only: see Program::allocator.
  const std::optional<AllocatorState>& allocator() const { return allocator_; }
  /// Returns the placements that the policy's rules choose for the saved tensors: see choose_placements.
  StepPlacements place(const Policy& policy) const;
  /// Saved tensors in the order in which backward first unpacks them.
  std::span<const SavedId> backward_order() const { return backward_order_; }
  /// For each event of events(), its index in Program::events.
  std::span<const std::int32_t> program_index() const { return program_index_; }

 private:
  void add_events(const StepProgram& program);
  void add_renewals(const StepProgram& program);
  void add_requests(const StepProgram& program);
  std::int32_t add_storage_without_bytes();

  EngineCosts costs_;
  bool parameters_are_on_disk_ = false;
  std::vector<Event> events_;
  std::vector<std::int32_t> program_index_;
  std::vector<Work> work_;
  std::vector<StreamWork> stream_work_;  ///< in the order of events
  Nanoseconds tail_compute_ns_ = 0;
  Nanoseconds compute_ns_ = 0;
  std::vector<PackRequest> requests_;
  std::vector<char> escapes_;
  std::vector<Bytes> storage_bytes_;
  std::vector<std::int32_t> streams_;  ///< by storage; empty: all are of the compute stream
  std::vector<FreePoint> free_points_;
  std::vector<std::int32_t> residents_;
  std::vector<std::int32_t> parameters_;  ///< see holds_parameters
  Bytes resident_bytes_ = 0;
  std::vector<StepRenewal> renewals_;
  std::vector<LetGo> let_goes_;  ///< by event
  bool carries_tensors_ = false;
  double most_copied_bytes_ = 0;
  std::size_t program_copies_ = 0;  ///< that the program itself makes
  bool meets_copies_ = false;
  std::vector<Bytes> staging_bytes_;  ///< empty if it is 0 for all tensors, as is the next member
  std::vector<Work> staging_work_;
  std::optional<AllocatorState> allocator_;
  std::vector<SavedId> backward_order_;
  std::shared_ptr<const StepProgram> rule_subjects_;  ///< the part of the program that rules depend on
  std::span<const TransformProfile> profiles_;
};

}  // namespace offprof
