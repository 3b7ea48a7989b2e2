#pragma once

#include <cstdint>
#include <string>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "engine/scheduler/scheduler.h"
#include "traces/base/units.h"
#include "traces/model/step_program.h"

namespace offprof {

/// Kinds of recorded events, in program order.
enum class RawKind : std::uint8_t {
  kPhase,          ///< id: name
  kOpBegin,        ///< id: name; value: depth, 0 for an outermost operator
  kOpEnd,          ///< id: name; value: depth, 0 for an outermost operator
  kAlloc,          ///< id: allocation; value: bytes
  kFreeRequested,  ///< id: allocation, whose memory stays in use until kFree
  kFree,           ///< id: allocation; value: bytes
  kProgramFree,    ///< id: allocation; the model drops its last reference while the engine holds it
  kPack,           ///< id: saved tensor
  kUnpack,         ///< id: saved tensor
  kRelease,        ///< id: saved tensor
  kFreeUnpacked,   ///< id: saved tensor, reloaded and now released, whose memory only the engine holds
  kNodeEnd,        ///< end of a node that unpacked something
  kBackwardEnd,
  kFetch,      ///< id: allocation, into which a copy of parameters begins
  kFetched,    ///< id: allocation, for whose copy the model waits
  kSave,       ///< id: allocation, whose parameters are copied out
  kReserved,   ///< value: bytes that the caching allocator holds from here on
  kReload,     ///< id: allocation; value: copy. Follows the kAlloc of that allocation
  kHookBegin,  ///< from here to the next kHookEnd the engine takes time of the model's thread
  kHookEnd,
  kCommand,  ///< id: index in RecordedPass::commands
};

struct RawEvent {
  RawKind kind = RawKind::kPhase;
  std::int64_t id = 0;
  std::int64_t value = 0;
  Nanoseconds begin_ns = 0;  ///< on the device's clock, when it happened
  Nanoseconds end_ns = 0;    ///< when recording it was done
  Work work{};               ///< given to the device since the last event, if the device reports it
};

/// Cause of work on a GPU, as passed to GpuTracer::push while a step is recorded: an operator, by the index
/// of its kOpBegin in RecordedPass::events, or a command, by its index in RecordedPass::commands.
struct WorkCause {
  static constexpr std::uint64_t kCommandBit = std::uint64_t{1} << 63U;

  static constexpr std::uint64_t of_op(std::size_t event) { return event; }
  static constexpr std::uint64_t of_command(std::size_t command) { return kCommandBit | command; }
  static constexpr bool is_command(std::uint64_t cause) { return (cause & kCommandBit) != 0; }
  static constexpr std::size_t index(std::uint64_t cause) { return cause & ~kCommandBit; }
};

struct RawCommand {
  Command command;
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
};

/// A saved tensor as it was packed. `saved.storage` is not set yet; `storage` identifies the storage.
struct RawSaved {
  SavedTensor saved;
  std::int64_t storage = 0;  ///< the allocation; 0: not on the device
  Bytes storage_bytes = 0;
  StorageRole role = StorageRole::kActivation;
  CopyId copy = -1;
};

/// Recording of one step.
struct RecordedPass {
  std::vector<std::string> names;
  std::vector<RawEvent> events;
  /// Streams of the allocations that are not of the compute stream: see ProgramStorage::stream.
  std::unordered_map<std::int64_t, std::int32_t> streams;
  /// Points that streams reach before memory is free, by allocation: see StepProgram::free_points.
  std::unordered_map<std::int64_t, std::vector<std::int32_t>> free_points;
  std::unordered_set<std::int64_t> gathered;  ///< allocations of gathered parameters
  std::vector<RawSaved> saved;                ///< by saved tensor
  std::vector<RawCommand> commands;
  std::vector<StreamCommand> stream_commands;  ///< `event` is an index in `events`
  std::vector<char> escaped;                   ///< by saved tensor
  Bytes resident_bytes = 0;
  Bytes reserved_bytes = 0;  ///< held by the caching allocator when the step began
  Nanoseconds begin_ns = 0;
  Nanoseconds end_ns = 0;
  StepSize size{};
  bool has_work = false;  ///< the device reports the work that it is given
};

}  // namespace offprof
