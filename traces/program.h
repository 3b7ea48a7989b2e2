#pragma once

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/allocator_state.h"
#include "traces/recipe.h"
#include "traces/tensor_layout.h"
#include "traces/units.h"
#include "traces/work.h"

namespace offprof {

/// Who owns a storage. Only activations may move: to move anything else frees nothing, its owner holds it.
enum class StorageRole : std::uint8_t {
  kActivation,  ///< born in the step
  kParameter,
  kBuffer,
  kInput,     ///< a step's input, held by the caller
  kResident,  ///< anything else that was there before the step: optimiser state, constants
};

/// Why a saved tensor may not leave the device, whatever the policy; kMovable if it may.
enum class Movability : std::uint8_t {
  kMovable,
  kParameter,          ///< a parameter or a view of one
  kBuffer,             ///< a buffer of the module or a view of one
  kInput,              ///< an input of the step
  kResident,           ///< its storage is older than the step
  kEmpty,              ///< no bytes
  kUnsupportedLayout,  ///< sparse, quantised, or without a storage of the device
  kPaged,              ///< a weight, or a value between shards, on the device only around its uses anyway
};

/// One device allocation that the program made, or that was there when the step began. Its identity is its
/// index in Program::storages, never its address (addresses are reused).
struct ProgramStorage {
  Bytes bytes = 0;
  StorageRole role = StorageRole::kActivation;

  bool operator==(const ProgramStorage&) const = default;
};

/// One saved tensor, in the order in which autograd saved them; its identity is its index in Program::saved.
struct SavedTensor {
  std::int32_t storage = 0;  ///< index in Program::storages
  std::uint32_t version =
      0;  ///< of its storage's saved contents, from 0: same storage and version, same content
  Movability movability = Movability::kMovable;
  bool is_parameter = false;  ///< the very parameter, not a view of it
  bool escapes = false;       ///< backward made something that shares the memory which unpack returned
  std::int32_t op = 0;        ///< index in Program::names: the operator that saved it
  std::int32_t module = -1;   ///< likewise the path of the submodule in which it did; -1: not known
  SharedLayout layout;
  std::int64_t storage_offset = 0;  ///< in elements
  Bytes bytes = 0;                  ///< number of elements times their size

  bool operator==(const SavedTensor&) const = default;
};

/// What happens in a training step, in program order.
enum class EventKind : std::uint8_t {
  kPhase,        ///< a phase begins; id: index in Program::names (`forward`, `backward`, `optimizer`)
  kOpBegin,      ///< an outermost operator or autograd node begins; id: index in Program::names
  kOpEnd,        ///< it ends; id: the same
  kAlloc,        ///< the program allocates a storage; id: index in Program::storages
  kFree,         ///< the program's own last reference to a storage goes; id: index in Program::storages
  kPack,         ///< autograd saves a tensor; id: index in Program::saved
  kUnpack,       ///< backward asks for it
  kRelease,      ///< autograd will not ask for it again
  kNodeEnd,      ///< the autograd node that unpacked tensors since the last kNodeEnd has run; id: 0
  kLetGo,        ///< what unpack returned is let go of: later than the node's end (SavedTensor::escapes), or
                 ///< before it
  kBackwardEnd,  ///< backward is done; id: 0
  kFetch,    ///< a copy in of weights begins, into a storage just allocated; id: index in Program::storages
  kFetched,  ///< the program waits for the end of that copy; id: the same
  kSave,     ///< weights are copied out of a storage, and the program waits for that; id: the same
};

struct Event {
  EventKind kind = EventKind::kPhase;
  std::int32_t id = 0;
  Nanoseconds compute_ns = 0;  ///< compute time since the event before, hooks and waits taken out

  bool operator==(const Event&) const = default;
};

/// What a device does to gather a tensor whose elements do not lie densely, before it copies it out: one
/// kernel on the copy's stream.
struct Staging {
  std::int32_t tensor = 0;  ///< index in Program::saved
  Nanoseconds host_ns = 0;  ///< to launch it
  Nanoseconds stream_ns = 0;

  bool operator==(const Staging&) const = default;
};

/// One training step as the offload scheduler and the memory see it. The order is that of a pass in which
/// every movable tensor was offloaded when it was saved, so that kFree tells when the *rest* of the program
/// lets go of a storage; the times are those of passes in which none was.
///
/// A step begins after the gradients were set to none and ends after the optimiser; what kFree events follow
/// then are the gradients, set to none for the next step.
struct Program {
  std::vector<std::string> names;
  std::vector<ProgramStorage> storages;
  std::vector<SavedTensor> saved;
  std::vector<Event> events;
  /// By event, how far Event::compute_ns spread over the recorded steps: the distance of the quartiles.
  /// Empty: not known.
  std::vector<Nanoseconds> compute_spread_ns{};
  /// On a device that computes beside the host: for each event the program's work since the event before,
  /// exactly on a virtual GPU, and as marks tell on a real one. Else empty: then Event::compute_ns is all
  /// that is known.
  std::vector<Work> work{};
  /// Where tensors are copied out densely, one by one (`trl`), and what that takes is known; by tensor.
  std::vector<Staging> staging{};
  /// Of the contents that can be made again, in the order of their tensors; nullopt: nobody looked.
  std::optional<std::vector<Recipe>> recipes{};
  /// Live on the device when the step begins; storages older than the step are in here.
  Bytes resident_bytes = 0;
  /// What PyTorch's CUDA caching allocator holds when the step begins, its cache given back; nullopt: the
  /// device has no such allocator.
  std::optional<AllocatorState> allocator{};

  bool operator==(const Program&) const = default;
};

/// The saved tensors in the order in which the program's backward first asks for them: what prefetch goes by,
/// in a run and in its simulation.
std::vector<std::int32_t> backward_order(const Program& program);

/// Multiplies every compute time, and the work; what rounding leaves over goes to the next event, so that
/// sums are exact.
void scale_compute(Program& program, double factor);
/// Likewise of the events from `begin` to before `end`.
void scale_compute(Program& program, double factor, std::size_t begin, std::size_t end);

}  // namespace offprof
