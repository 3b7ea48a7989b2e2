#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <unordered_map>

#include "engine/devices/virtual_gpu/collectives/collective_cost.h"
#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/state/execution_state.h"
#include "engine/devices/virtual_gpu/state/gpu_kernels.h"
#include "engine/devices/virtual_gpu/state/gpu_status.h"
#include "engine/devices/virtual_gpu/values/collective_call.h"
#include "engine/devices/virtual_gpu/values/peer_talk.h"
#include "traces/base/units.h"

namespace offprof {

/// A rank's place in a group of ranks that communicate.
struct Communicator {
  int rank = 0;
  GroupShape group;
};

/// A group as Python tells of it: see VirtualGpu::note_group.
struct NotedGroup {
  GroupShape shape;
  std::string name;
};

/// Collectives of the virtual GPU, of one rank without its peers. A collective is a kernel on its stream with
/// a modelled time. Small values (SmallValues) are carried as if all ranks gave the same ones. In functional
/// mode all bytes are, but a reduction gives this rank's own numbers. If the other ranks run too, small
/// values are theirs.
class GpuCollectives {
 public:
  /// Both arguments must outlive it.
  GpuCollectives(ExecutionState& execution, GpuKernels& kernels) : state_(execution), kernels_(kernels) {}

  /// See VirtualGpu::note_group.
  void note_group(const std::string& key, NotedGroup group);
  /// Returns the group that was noted under the key; nullopt: none.
  std::optional<NotedGroup> noted_group(const std::string& key) const;

  /// See VirtualGpu.
  void let_watchdogs_look();

  /// See VirtualGpu::exchange_with_peers.
  void exchange_with_peers(PeerSettings settings);
  /// See VirtualGpu.
  void note_objects(bool are_carried);
  void stop_exchange();

  /// Creates a communicator, which exists until destroy. Without `nodes` the ranks fill one node after
  /// another. `key` names the communicator on all ranks; empty: nothing is exchanged with them.
  Communicator* create(int rank, int ranks, std::optional<int> nodes = std::nullopt,
                       const std::string& key = {});
  /// Creates the part of a communicator that the ranks with that color make, in the order of `order`. Waits
  /// for the other ranks. Returns nullptr if peers do not run, or after a problem.
  Communicator* split(Communicator* whole, int color, int order);
  /// Returns the name, on all its ranks, of the part that a rank without peers splits off next; empty: there
  /// is none.
  std::string name_of_part(const Communicator* whole, int color);
  /// Returns the text of the last problem with other ranks, and forgets it.
  std::string take_problem();
  /// Waits for the device, as NCCL flushes a communicator, and destroys it. Returns kInvalidHandle if there
  /// is none.
  GpuStatus destroy(Communicator* communicator);
  /// Waits for the device if the communicator exists, and tells its other ranks that this one calls no more.
  /// Returns kPeerProblem if they have called more or fewer.
  GpuStatus finalize(const Communicator* communicator);
  bool exists(const Communicator* communicator) const;

  /// Runs the calls as one kernel: one call, or those of a group.
  GpuStatus run(StreamId stream, const Communicator& communicator, std::span<const CollectiveCall> calls);
  /// Returns the time that `run` takes on the device. Sends and receives of a group run at the same time.
  Nanoseconds time_of(const Communicator& communicator, std::span<const CollectiveCall> calls) const;

  CollectiveFigures figures() const;

  /// Takes the profile of the options and sets the figures to 0. The caller holds the lock.
  void restart();

 private:
  using CollectiveTimes = std::array<Nanoseconds, kCollectives>;  ///< by Collective

  void await_watchdogs(std::unique_lock<std::mutex>& lock);
  void begin_collective();
  void gather_broadcasts(StreamId stream, std::span<const CollectiveCall> calls);
  void carry_values(StreamId stream, const Communicator& communicator, const CollectiveCall& call);
  void move(StreamId stream, void* to, const void* from, Bytes bytes);
  void reduce(StreamId stream, const Communicator& communicator, const CollectiveCall& call, Bytes bytes);
  CollectiveTimes times_of(const Communicator& communicator, std::span<const CollectiveCall> calls) const;
  Nanoseconds time_of_messages(const Communicator& communicator, std::span<const CollectiveCall> calls,
                               Collective direction) const;

  ExecutionState& state_;
  GpuKernels& kernels_;
  void take_from_earlier_ranks(PeerTalk& talk, std::span<const CollectiveCall> calls,
                               const std::string& site);
  std::string call_site() const;
  GpuStatus compare(const Communicator* communicator, const std::function<void(PeerTalk&)>& tell);

  std::optional<PeerSettings> peers_;  ///< nullopt: there are none
  std::string mismatch_;               ///< see CollectiveFigures
  std::unordered_map<const Communicator*, std::shared_ptr<PeerTalk>> talks_;
  std::optional<CollectiveCost> cost_;  ///< empty before the first restart
  std::map<std::string, NotedGroup> noted_groups_;
  std::unordered_map<const Communicator*, std::unique_ptr<Communicator>> communicators_;
  std::int64_t most_communicators_ = 0;
  std::array<CollectiveCount, kCollectives> counts_;
};

}  // namespace offprof
