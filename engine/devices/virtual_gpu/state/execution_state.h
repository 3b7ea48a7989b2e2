#pragma once

#include <atomic>
#include <condition_variable>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>

#include "engine/devices/virtual_gpu/races/stream_ids.h"
#include "engine/devices/virtual_gpu/races/stream_races.h"
#include "engine/devices/virtual_gpu/state/functional_mode.h"
#include "engine/devices/virtual_gpu/state/gpu_observer.h"
#include "engine/devices/virtual_gpu/state/requested_free.h"
#include "engine/devices/virtual_gpu/state/virtual_time.h"
#include "engine/devices/virtual_gpu/state/watched_ends.h"
#include "engine/devices/virtual_gpu/values/small_values.h"
#include "engine/devices/virtual_gpu/virtual_gpu.h"

namespace offprof {

using GpuLock = std::lock_guard<std::mutex>;

/// State that the parts of the virtual GPU share: the options, and the observers of operations.
///
/// The mutex guards all parts of the GPU, since autograd calls CUDA from its own thread. Every public
/// function of a part locks it, except those whose comment says that the caller holds it. So does this
/// struct's caller.
struct ExecutionState {
  ExecutionState();
  ~ExecutionState();
  ExecutionState(const ExecutionState&) = delete;
  ExecutionState& operator=(const ExecutionState&) = delete;

  /// Sets the options, the clocks back to zero, and creates the race checker and functional mode anew if they
  /// are requested. Neither knows of a stream yet.
  void restart(VirtualGpuOptions new_options);

  /// Makes the host wait until the stream, or the device, has done its work.
  void wait_for_stream(StreamId stream);
  void wait_for_device();

  /// Returns true if the collectives of this thread carry objects: see VirtualGpu::note_objects.
  bool carries_objects() const { return threads_with_objects.contains(std::this_thread::get_id()); }

  mutable std::mutex mutex;
  VirtualGpuOptions options;
  VirtualTime time;
  RequestedFree requested_free;
  WatchedEnds watched_ends;
  std::condition_variable watchdog_told;  ///< a watchdog has seen ends
  SmallValues values;                     ///< outside functional mode
  std::int64_t unknown_reads = 0;         ///< see GpuOperators
  std::optional<std::int64_t> answer;     ///< see GpuValues::answer_reads
  std::set<std::thread::id> threads_with_objects{};
  std::string read_problem;         ///< why values of another rank were not read; empty: none
  std::string peer_problem;         ///< the last problem with other ranks; empty: none
  std::optional<StreamRace> races;  ///< empty if streams are not checked
  std::optional<FunctionalModeWork> functional_mode;  ///< empty outside functional mode
  std::atomic<GpuObserver*> observer = nullptr;       ///< set without the lock; nullptr: none
};

}  // namespace offprof
