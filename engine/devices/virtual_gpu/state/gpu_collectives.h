#pragma once

#include <array>
#include <cstdint>
#include <map>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "engine/devices/virtual_gpu/model/collective_cost.h"
#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/state/execution_state.h"
#include "engine/devices/virtual_gpu/state/gpu_kernels.h"
#include "engine/devices/virtual_gpu/state/gpu_status.h"
#include "traces/base/units.h"

namespace offprof {

/// A rank's place in a group of ranks that communicate.
struct Communicator {
  int rank = 0;
  GroupShape group;
};

/// Number type of a collective, as far as its values are carried.
enum class NumberType : std::uint8_t {
  kInt8,
  kUint8,
  kInt32,
  kUint32,
  kInt64,
  kUint64,
  kFloat32,
  kFloat64,
  kOther
};
/// Reduction of a collective, as far as its values are carried. Maximum, minimum and average of equal numbers
/// are the number.
enum class Reduction : std::uint8_t { kSum, kSame, kOther };

/// One operation between ranks.
struct CollectiveCall {
  Collective collective = Collective::kAllReduce;
  const void* send = nullptr;
  void* receive = nullptr;
  Bytes bytes = 0;  ///< the message: see CollectiveCost::time_of
  NumberType type = NumberType::kOther;
  Reduction reduction = Reduction::kOther;
  bool is_root = false;  ///< of broadcast and reduce
};

/// Collectives of the virtual GPU, of one rank without its peers. A collective is a kernel on its stream with
/// a modelled time. Small values (SmallValues) are carried as if all ranks gave the same ones. In functional
/// mode all bytes are, but a reduction gives this rank's own numbers.
class GpuCollectives {
 public:
  /// Both arguments must outlive it.
  GpuCollectives(ExecutionState& execution, GpuKernels& kernels) : state_(execution), kernels_(kernels) {}

  /// See VirtualGpu::note_group.
  void note_group(const std::string& key, GroupShape group);
  /// Returns the group that was noted under the key; nullopt: none.
  std::optional<GroupShape> noted_group(const std::string& key) const;

  /// Creates a communicator, which exists until destroy. Without `nodes` the ranks fill one node after
  /// another.
  Communicator* create(int rank, int ranks, std::optional<int> nodes = std::nullopt);
  /// Waits for the device, as NCCL flushes a communicator, and destroys it. Returns kInvalidHandle if there
  /// is none.
  GpuStatus destroy(Communicator* communicator);
  /// Waits for the device if the communicator exists.
  GpuStatus flush(const Communicator* communicator);
  bool exists(const Communicator* communicator) const;

  /// Runs the calls as one kernel: one call, or those of a group.
  GpuStatus run(StreamId stream, const Communicator& communicator, std::span<const CollectiveCall> calls);
  /// Returns the time that `run` takes on the device. Sends and receives of a group run at the same time.
  Nanoseconds time_of(const Communicator& communicator, std::span<const CollectiveCall> calls) const;

  CollectiveFigures figures() const;

  /// Takes the profile of the options and sets the figures to 0. The caller holds the lock.
  void restart();

 private:
  void carry_values(StreamId stream, const Communicator& communicator, const CollectiveCall& call);
  void move(StreamId stream, void* to, const void* from, Bytes bytes);
  void reduce(StreamId stream, const Communicator& communicator, const CollectiveCall& call, Bytes bytes);
  Nanoseconds sum_times(const Communicator& communicator, std::span<const CollectiveCall> calls) const;

  ExecutionState& state_;
  GpuKernels& kernels_;
  std::optional<CollectiveCost> cost_;  ///< empty before the first restart
  std::map<std::string, GroupShape> noted_groups_;
  std::unordered_map<const Communicator*, std::unique_ptr<Communicator>> communicators_;
  std::int64_t most_communicators_ = 0;
  std::array<CollectiveCount, kCollectives> counts_;
};

}  // namespace offprof
