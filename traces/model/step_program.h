#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/units.h"
#include "traces/model/allocator_state.h"
#include "traces/model/recomputation.h"
#include "traces/model/tensor_layout.h"
#include "traces/model/work.h"

namespace offprof {

/// Owner of a storage. Only activations may move; another storage stays allocated because its owner holds it.
enum class StorageRole : std::uint8_t {
  kActivation,  ///< allocated in the step
  kParameter,
  kBuffer,
  kInput,     ///< an input of the step, held by the caller
  kResident,  ///< any other storage that existed before the step: optimizer state, constants
  kGathered,  ///< parameters that the step gathers from other ranks around their uses
};

/// Returns true if storages of that role exist before the step begins.
constexpr bool is_older_than_step(StorageRole role) {
  return role != StorageRole::kActivation && role != StorageRole::kGathered;
}

/// Reason why a saved tensor may not leave the device, whatever the policy; kMovable if it may.
enum class Movability : std::uint8_t {
  kMovable,
  kParameter,          ///< a parameter or a view of one
  kBuffer,             ///< a buffer of the module or a view of one
  kInput,              ///< an input of the step
  kResident,           ///< its storage is older than the step
  kEmpty,              ///< no bytes
  kUnsupportedLayout,  ///< sparse, quantized, or without a storage on the device
  /// A parameter under parameter offload, or a value between layer slices. It is on the device only around
  /// its uses anyway.
  kParameterGroup,
  /// Saved by a backward that had already unpacked a tensor of its storage, and so holds its memory anyway:
  /// the input of a region whose forward backward runs again (re-entrant checkpointing), or a value that is
  /// needed for the gradient of a gradient. Its storage has no bytes: the unpacked tensor counts for both.
  kUnpacked,
};

/// Device allocation that the model made, or that existed at the start of the step. It is identified by its
/// index in Program::storages, never by its address, because addresses are reused.
struct ProgramStorage {
  Bytes bytes = 0;
  StorageRole role = StorageRole::kActivation;
  std::int32_t stream = kComputeStream;  ///< of the caching allocator's pool that it comes from

  bool operator==(const ProgramStorage&) const = default;
};

/// The operators that save the inputs of a checkpointed module: of a submodule of a TorchScript module, and
/// of a module in torch.utils.checkpoint.
inline constexpr const char* kCheckpointOp = "offprof::checkpoint";
inline constexpr const char* kTorchCheckpointOp = "_NoopSaveInputs";

/// Saved tensor. It is identified by its index in Program::saved, which has the order in which autograd
/// saved.
struct SavedTensor {
  std::int32_t storage = 0;  ///< index in Program::storages
  /// Version of the storage's saved content, from 0. Equal storage and version mean equal content.
  std::uint32_t version = 0;
  Movability movability = Movability::kMovable;
  bool is_parameter = false;  ///< the parameter itself, not a view of it
  bool escapes = false;       ///< backward made a tensor that shares the memory which unpack returned
  std::int32_t op = 0;        ///< index in Program::names: the operator that saved it
  std::int32_t module = -1;   ///< index in Program::names: path of the submodule that saved it; -1: not known
  std::int32_t line = -1;  ///< index in Program::names: source line that saved it, `FILE:LINE`; -1: not known
  SharedLayout layout;
  std::int64_t storage_offset = 0;  ///< in elements
  Bytes bytes = 0;                  ///< number of elements times their size

  bool operator==(const SavedTensor&) const = default;
};

/// Event of a training step, in the order of the step program.
enum class EventKind : std::uint8_t {
  kPhase,    ///< a phase begins; id: index in Program::names (`forward`, `backward`, `optimizer`)
  kOpBegin,  ///< an outermost operator or autograd node begins; id: index in Program::names
  kOpEnd,    ///< it ends; id: the same
  kAlloc,    ///< the model allocates a storage; id: index in Program::storages
  kFree,     ///< the model drops its last reference to a storage; id: index in Program::storages
  kPack,     ///< autograd saves a tensor; id: index in Program::saved
  kUnpack,   ///< backward unpacks it; id: the same
  kRelease,  ///< autograd will not unpack it again; id: the same
  kNodeEnd,  ///< the autograd node that unpacked tensors since the last kNodeEnd has run; id: 0
  /// The reference to the unpacked tensor is dropped, before the end of the node or after it
  /// (SavedTensor::escapes).
  kFreeUnpacked,
  kBackwardEnd,  ///< backward ends; id: 0
  kFetch,        ///< a copy in of parameters into a new storage begins; id: index in Program::storages
  kFetched,      ///< the step waits for the end of that copy; id: the same
  kSave,         ///< a storage of parameters is copied out, and the step waits for it; id: the same
  /// The model drops its last reference to a storage that other streams may still use. The caching allocator
  /// does not give its memory out before kFree; id: index in Program::storages.
  kFreeRequested,
};

struct Event {
  EventKind kind = EventKind::kPhase;
  std::int32_t id = 0;
  Nanoseconds compute_ns = 0;  ///< compute time since the previous event, without hooks and waits

  bool operator==(const Event&) const = default;
};

/// Point (see StreamCommand) that a stream has to reach before a storage is free, after its kFreeRequested.
struct FreePoint {
  std::int32_t storage = 0;  ///< index in StepProgram::storages
  std::int32_t point = 0;

  bool operator==(const FreePoint&) const = default;
};

/// A storage that a step leaves allocated and the next step frees, as of a graph that the program drops only
/// when it makes the next one.
struct Renewal {
  // Indices in StepProgram::storages.
  std::int32_t old_storage = 0;  ///< left by the step before, freed in this one
  std::int32_t new_storage = 0;  ///< left by this step in its place
  /// Index in StepProgram::events of the event before which the program itself drops the old storage, if
  /// saved tensors of the step before may hold it longer, until its kFree at the latest. -1: the program does
  /// not hold it, or it is not known.
  std::int32_t let_go = -1;

  bool operator==(const Renewal&) const = default;
};

/// Kernel on the copy's stream that gathers a tensor whose elements are not dense, before it is copied out.
struct Staging {
  std::int32_t tensor = 0;  ///< index in Program::saved
  Nanoseconds host_ns = 0;  ///< time to launch the kernel
  Nanoseconds stream_ns = 0;

  bool operator==(const Staging&) const = default;
};

/// Modelled time of one family of operators (engine/devices/virtual_gpu/work/op_family.h).
struct FamilyTime {
  std::string family;
  Nanoseconds busy_ns = 0;  ///< time of the compute stream in a step

  bool operator==(const FamilyTime&) const = default;
};

/// Step program: one training step as the offload scheduler and the memory see it. The order of events is
/// from a pass that offloads every movable tensor when it is saved, so that kFree marks when the *rest* of
/// the model drops a storage. The times are from passes that offload nothing.
///
/// A step begins after the gradients are set to none and ends after the optimizer. kFree events after the
/// optimizer are gradients, which are set to none for the next step.
struct StepProgram {
  std::vector<std::string> names;
  std::vector<ProgramStorage> storages;
  std::vector<SavedTensor> saved;
  std::vector<Event> events;
  /// Spread of Event::compute_ns over the recorded steps, by event: the distance between the quartiles.
  /// Empty: not known.
  std::vector<Nanoseconds> compute_spread_ns{};
  /// Work since the previous event, by event, on a device that computes beside the host. It is exact on a
  /// virtual GPU and derived from marks on a real GPU. Empty on other devices, where only Event::compute_ns
  /// is known.
  std::vector<Work> work{};
  /// Commands of the program beside this work, in order: see StreamCommand. `work` of an event is the work
  /// since the last of the event's commands. Known only on a virtual GPU.
  std::vector<StreamCommand> stream_commands{};
  /// In the order of storages. The next event after all points of a storage are reached frees it, whatever
  /// its kFree says, which depends on the policy. Known only on a virtual GPU.
  std::vector<FreePoint> free_points{};
  /// In the order of old storages. A freed storage that is older than the step and not among them has a
  /// successor that is not known.
  std::vector<Renewal> renewals{};
  /// Parts of the work's busy_ns by the innermost operator's family, of those that take any time. Empty:
  /// times are not modelled.
  std::vector<FamilyTime> families{};
  /// Gather kernels by tensor, if tensors are copied out densely, one by one (`trl`), and their cost is
  /// known.
  std::vector<Staging> staging{};
  /// Recompute steps of the contents that can be recomputed, in the order of their tensors; nullopt: not
  /// examined.
  std::optional<std::vector<Recomputation>> recomputations{};
  /// Bytes live on the device at the start of the step; storages older than the step are included.
  Bytes resident_bytes = 0;
  /// State of PyTorch's CUDA caching allocator at the start of the step, after its cache was emptied;
  /// nullopt: the device has no such allocator.
  std::optional<AllocatorState> allocator{};

  bool operator==(const StepProgram&) const = default;
};

/// Returns the saved tensors in the order in which backward first unpacks them. Prefetch follows this order,
/// in a run and in its simulation.
std::vector<std::int32_t> backward_order(const StepProgram& program);

/// Returns the new storages of the renewals that movable saved tensors view which the step does not release:
/// what the next step finds of them depends on the policy. `of_program`: only those that the program itself
/// holds at the end of the step, or only the others; nullopt: all.
std::vector<std::int32_t> carried_storages(const StepProgram& program, std::optional<bool> of_program = {});

/// Drops waits of a stream for itself, waits for points that the program has not recorded, and records that
/// nothing waits for. Numbers the other records anew.
void drop_unneeded_points(StepProgram& program);

/// Multiplies all compute times and the work by `factor`. The rounding error is carried to the next event, so
/// that sums stay exact.
void scale_compute(StepProgram& program, double factor);
/// Does the same for the events from `begin` to before `end`.
void scale_compute(StepProgram& program, double factor, std::size_t begin, std::size_t end);

}  // namespace offprof
