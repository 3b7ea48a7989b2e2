#pragma once

#include <cstdint>
#include <memory>
#include <span>
#include <vector>

#include "engine/schedule/tensor_placement.h"
#include "traces/ledger.h"
#include "traces/policy.h"
#include "traces/program.h"
#include "traces/units.h"

namespace offprof {

/// A saved tensor of the step, counted from 0 in the order in which autograd saved them.
using SavedId = std::int32_t;
/// One copy in host memory, counted from 0 in the order in which the step began them.
using CopyId = std::int32_t;

/// What the scheduler must know of a tensor that is being saved.
struct PackRequest {
  std::int64_t storage = 0;   ///< identity of its storage, never an address; any number that is used once
  std::uint32_t version = 0;  ///< of the storage's content: where it is the same, the content is
  Bytes storage_bytes = 0;
  Bytes tensor_bytes = 0;  ///< number of elements times their size
  Movability movability = Movability::kMovable;
  bool is_parameter = false;  ///< the very parameter, not a view of it
};

/// What the scheduler tells an executor to do. Each is carried out at that point of program order.
enum class CommandKind : std::uint8_t {
  kKeep,      ///< hold the saved tensor on the device
  kLetGo,     ///< drop that hold
  kCopyOut,   ///< take host memory, start the copy device -> host; hold the device storage
  kWaitOut,   ///< the compute stream waits for it
  kDrop,      ///< drop the hold on the copy's device storage
  kCopyIn,    ///< take device memory, start the copy host -> device; hold the device storage
  kWaitIn,    ///< the compute stream waits for it
  kFreeHost,  ///< give the host memory back
  kEncode,  ///< pack the tensor's storage by its transform; hold the packed storage, which is then the copy's
  kDecode,  ///< unpack it into a new storage, which is then the copy's; drop the packed one
  kDiscard,    ///< hold nothing: the copy has no storage until it is made again
  kRemake,     ///< make it again by its recipe, in a new storage, which is then the copy's
  kTakeDisk,   ///< take the copy's space on the disk, before anything else of it
  kWriteDisk,  ///< start writing it, out of its host memory, after its copy out
  kWaitWrite,  ///< the host waits for that: then its host memory may be given back
  kReadDisk,   ///< take host memory, start reading into it; a kCopyIn begins after that
  kWaitRead,   ///< the host waits for that, where no kCopyIn did
  kFreeDisk,   ///< give the space back
};

struct Command {
  CommandKind kind = CommandKind::kKeep;
  SavedId tensor = -1;  ///< the saved tensor it is for; of a shared copy, the first
  CopyId copy = -1;     ///< -1 for kKeep and kLetGo
  Bytes bytes = 0;      ///< that are held, copied or freed

  bool operator==(const Command&) const = default;
};

/// Carries commands out: over LibTorch, or on virtual clocks and virtual memory.
class Executor {
 public:
  virtual ~Executor() = default;
  /// Throws what its device throws; the step is lost then.
  virtual void execute(const Command& command) = 0;
  /// Likewise a kCopyIn, kDecode or kRemake that may wait: false, and nothing was done, where the device has
  /// no memory for it now. Likewise a kTakeDisk, where the disk is full. Virtual memory and virtual disks
  /// have no end.
  virtual bool try_execute(const Command& command) {
    execute(command);
    return true;
  }
};

/// Where a saved tensor went, why, and which copy holds it (-1: kept on the device as it is).
struct PackDecision {
  Place place = Place::kDevice;
  PlacementReason reason = PlacementReason::kNothingOffloaded;
  CopyId copy = -1;

  bool operator==(const PackDecision&) const = default;
};

/// The offload scheduler: decides what leaves the device, what may be dropped, when to reload, what to wait
/// for. It knows program order only, no clock and no address, so that memory is the same on a fast and a slow
/// link, and a simulation that calls it in the same order gets the same commands. Only where a device refuses
/// memory for a copy in (Executor::try_execute) do commands depend on what it has.
///
/// One scheduler serves one step. Call it in program order: pack, unpack, release and node_end as autograd
/// does, then backward_end. Tensors are numbered in the order of their pack. Where one is unpacked again
/// (retain_graph) its device storage is there again.
class Scheduler {
 public:
  virtual ~Scheduler() = default;

  /// `rule`: what the policy's rules make of the tensor; nullopt: none matches, or there are none.
  virtual PackDecision pack(SavedId tensor, const PackRequest& request, const RuledPlacement& rule) = 0;
  PackDecision pack(SavedId tensor, const PackRequest& request) { return pack(tensor, request, {}); }
  /// After it the tensor's device storage is there and may be used by the compute stream.
  virtual void unpack(SavedId tensor) = 0;
  /// Autograd will not ask for the tensor again.
  virtual void release(SavedId tensor) = 0;
  /// The autograd node that unpacked `tensors` has run; `escaped`: those whose memory is still in use after
  /// it.
  virtual void node_end(std::span<const SavedId> tensors, std::span<const SavedId> escaped) = 0;
  virtual void backward_end() = 0;
  /// Whether node_end and backward_end matter to it (an executor need not call them otherwise).
  virtual bool needs_node_ends() const = 0;
  /// A scheduler at the same point of the step that goes on under `policy`, its commands going to `executor`.
  /// The policy is of the same kind, and decides as the first one did on all that has been decided so far:
  /// the prefetch window may differ before the first unpack, a plan in tensors that are not packed yet, a
  /// limit as long as neither value of it has refused what the other let in.
  virtual std::unique_ptr<Scheduler> clone(const Policy& policy, Executor& executor) const = 0;
};

/// The reason for keeping a tensor that may not move. `movability` is not kMovable.
PlacementReason reason_of(Movability movability);

/// The scheduler of a policy for one step. `backward_order`: the saved tensors in the order in which a
/// recorded step unpacked them; empty where none is recorded (the reverse of the pack order serves then). It
/// and `executor` must outlive the scheduler.
std::unique_ptr<Scheduler> make_scheduler(const Policy& policy, std::span<const SavedId> backward_order,
                                          Executor& executor);

}  // namespace offprof
