#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <vector>

#include "engine/scheduler/command.h"
#include "engine/scheduler/limit_ranges.h"
#include "engine/scheduler/resolved_placement.h"
#include "traces/base/units.h"
#include "traces/model/ledger.h"
#include "traces/model/policy.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Facts about a tensor that autograd is saving.
struct PackRequest {
  std::int64_t storage = 0;   ///< identity of the storage, never an address; any number used only once
  std::uint32_t version = 0;  ///< version of the storage's content; equal versions mean equal content
  Bytes storage_bytes = 0;
  Bytes tensor_bytes = 0;  ///< number of elements times the size of an element
  Movability movability = Movability::kMovable;
  bool is_parameter = false;  ///< the parameter itself, not a view of it
};

/// Carries out commands: with LibTorch, or on virtual clocks and virtual memory.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Carries out the command. Passes on exceptions of the device; the step cannot continue after one.
  virtual void execute(const Command& command) = 0;
  /// Carries out a command that may be put off. Returns false and does nothing if the device has no memory
  /// for it now, or if the disk is full. Virtual memory and virtual disks are unlimited.
  virtual bool try_execute(const RefusableCommand& command) {
    execute(as_command(command));
    return true;
  }
  /// Returns the host memory that saved tensors of older steps take now: a graph may outlive its step.
  virtual Bytes older_host_bytes() const { return 0; }
};

/// Placement of a saved tensor, the reason for it, and the copy that holds the tensor (-1: the tensor is kept
/// on the device as it is).
struct PackDecision {
  Place place = Place::kDevice;
  PlacementReason reason = PlacementReason::kNothingOffloaded;
  CopyId copy = -1;

  bool operator==(const PackDecision&) const = default;
};

/// Decides which saved tensors leave the device, when their device storage may be dropped, when to reload
/// them, and when to wait for a copy. A scheduler knows program order only, no clock and no address. So
/// memory use is the same on a fast and a slow link, and a simulation that makes the same calls in the same
/// order gets the same commands. Commands depend on the device only if it refuses memory for a copy in
/// (Executor::try_execute).
///
/// One scheduler serves one step. Call it in program order: pack, unpack, release and node_end as autograd
/// does, then backward_end. Tensors are numbered in the order in which they are packed. A tensor may be
/// unpacked more than once (retain_graph); each unpack makes its device storage available again.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// Decides where the tensor goes. `rule`: the placement from the policy's rules; nullopt if no rule matches
  /// or there are no rules.
  virtual PackDecision pack(SavedId tensor, const PackRequest& request, const RuledPlacement& rule) = 0;
  PackDecision pack(SavedId tensor, const PackRequest& request) { return pack(tensor, request, {}); }
  /// Makes the tensor's device storage available to the compute stream.
  virtual void unpack(SavedId tensor) = 0;
  /// Releases the tensor: autograd will not unpack it again.
  virtual void release(SavedId tensor) = 0;
  /// Reports that the autograd node that unpacked `tensors` has run. `escaped`: the tensors whose memory is
  /// still in use after the node.
  virtual void node_end(std::span<const SavedId> tensors, std::span<const SavedId> escaped) = 0;
  virtual void backward_end() = 0;
  /// True if the scheduler needs node_end and backward_end (otherwise an executor need not call them).
  virtual bool needs_node_ends() const = 0;
  /// Returns a scheduler at the same point of the step that continues under `policy` and sends its commands
  /// to `executor`. The policy must be of the same kind and must agree with the current policy on every
  /// decision made so far: the prefetch window may differ before the first unpack, a plan may differ in
  /// tensors that are not packed yet, and a limit may differ as long as neither value has refused what the
  /// other one admitted.
  virtual std::unique_ptr<Scheduler> clone(const Policy& policy, Executor& executor) const = 0;

  /// The three functions below tell how far clone() may be used: a scheduler whose policy is `other` does the
  /// same up to the first event for which they return false. They may return false for events that would not
  /// differ. Before the first event: true if `other` differs only in its threshold, plan, stash or window.
  virtual bool starts_alike(const Policy& /*other*/) const { return false; }
  /// True if `pack` with these arguments would do the same under `other`.
  virtual bool packs_alike(SavedId /*tensor*/, const PackRequest& /*request*/, const RuledPlacement& /*rule*/,
                           const Policy& /*other*/) const {
    return false;
  }
  /// True if `unpack` would do the same under `other`.
  virtual bool unpacks_alike(const Policy& /*other*/) const { return false; }

  /// Returns the ranges of the policy's limits that lead to the decisions made so far; nullopt if the
  /// scheduler does not record them.
  virtual std::optional<LimitRanges> limit_ranges() const { return std::nullopt; }
};

/// Returns the reason for keeping a tensor that may not move. `movability` must not be kMovable.
PlacementReason reason_of(Movability movability);

/// Creates the scheduler of a policy for one step. `backward_order`: the saved tensors in the order in which
/// a recorded step unpacked them; empty if no order is recorded (then the scheduler uses the reverse of the
/// pack order). `backward_order` and `executor` must outlive the scheduler.
std::unique_ptr<Scheduler> make_scheduler(const Policy& policy, std::span<const SavedId> backward_order,
                                          Executor& executor);

}  // namespace offprof
