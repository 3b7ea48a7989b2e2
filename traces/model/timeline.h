#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Row of a trace. Waits for copies are on the compute track, waits for a launch by the host on kLaunchGaps.
enum class Track : std::uint8_t { kCompute, kD2h, kH2d, kLaunchGaps, kDiskWrite, kDiskRead };

/// Name of the waits on Track::kLaunchGaps.
inline constexpr const char* kWaitForLaunch = "wait for launch";
/// Names of waits for a copy. If the time at which the link reached the copy is known, the part before it is
/// a kWaitForLink.
inline constexpr const char* kWaitForCopyOut = "wait for copy out";
inline constexpr const char* kWaitForCopyIn = "wait for copy in";
inline constexpr const char* kWaitForLink = "wait for link";

inline constexpr const char* kWaitForDisk = "wait for disk";

/// Returns the name of transfers on the disk tracks.
constexpr const char* disk_transfer_name(Track track) {
  return track == Track::kDiskWrite ? "disk write" : "disk read";
}

/// Returns the name of waits for a copy or a transfer in that direction.
constexpr const char* wait_name(Track copy_track) {
  if (copy_track == Track::kDiskWrite || copy_track == Track::kDiskRead) return kWaitForDisk;
  return copy_track == Track::kD2h ? kWaitForCopyOut : kWaitForCopyIn;
}

enum class SpanKind : std::uint8_t {
  kStep,   ///< one training step, `ProfilerStep#n`
  kPhase,  ///< forward, backward, optimizer
  kOp,     ///< an operator, or an autograd node
  kCopy,   ///< on a copy track
  kWait,   ///< the compute track stalls
};

/// Interval on one track. Spans of one track nest or follow one another; they never overlap partially.
struct Span {
  Track track = Track::kCompute;
  SpanKind kind = SpanKind::kOp;
  std::string name;
  Nanoseconds begin_ns = 0;
  Nanoseconds duration_ns = 0;
  Bytes bytes = 0;                    ///< copies: size
  std::int64_t tensor = -1;           ///< copies and waits: index in Program::saved of the saved tensor
  std::string reason;                 ///< waits: cause
  std::optional<Track> copy_track{};  ///< waits: track of the copy; nullopt: a wait for launch, or not known
  /// Operators: it lies in another operator. Only needed for operators of zero duration, whose times do not
  /// show the nesting.
  bool is_nested = false;
  std::int64_t external_id = 0;  ///< operators: id that GPU work refers to; 0: none was traced
};

/// Point of an arrow that follows a saved tensor through time. The points of one (step, copy) form the chain
/// pack -> copy out -> copy in -> unpack.
struct FlowPoint {
  std::int64_t flow = 0;  ///< number of the chain
  Track track = Track::kCompute;
  Nanoseconds at_ns = 0;
  std::string name;  ///< `pack`, `copy out`, `copy in`, `unpack`
  /// Copies in Timeline::gpu: the GPU stream, instead of `track`.
  std::optional<std::uint32_t> stream{};
};

enum class GpuSpanKind : std::uint8_t {
  kKernel,
  kCopy,
  kSet,
  kCall,  ///< a CUDA API call on the host
};

/// Record of a GPU tracer. Spans of one stream follow one another.
struct GpuSpan {
  GpuSpanKind kind = GpuSpanKind::kKernel;
  /// Kernels: the demangled name. Copies: `Memcpy DtoH (Device -> Pinned)`, sets: `Memset (Device)`, as in
  /// PyTorch's profiler. Calls: the function.
  std::string name{};
  std::uint32_t row = 0;  ///< stream; for calls, the host thread, counted from 0
  Nanoseconds begin_ns = 0;
  Nanoseconds duration_ns = 0;
  Bytes bytes = 0;                              ///< copies and sets
  std::int64_t correlation = 0;                 ///< equal for a call and its work; 0: not known
  std::int64_t external_id = 0;                 ///< id of the operator that the work belongs to; 0: none
  std::int64_t tensor = -1;                     ///< copies: see Span
  std::array<std::int32_t, 3> grid{}, block{};  ///< kernels: number of blocks, threads per block
  /// Copies of saved tensors: time from the moment the stream reached the copy to the start of the copy.
  Nanoseconds lead_ns = 0;
};

/// Value of a counter from this time on.
struct CounterSample {
  std::string name;  ///< `device_bytes`, `device_reserved_bytes`, `host_bytes`
  Nanoseconds at_ns = 0;
  std::int64_t value = 0;
};

/// Allocation or free by the device's allocator.
struct AllocatorEvent {
  Nanoseconds at_ns = 0;
  std::int64_t allocation = 0;  ///< equal for an allocation and its free
  Bytes bytes = 0;              ///< negative for a free
  Bytes allocated_bytes = 0;    ///< bytes allocated and not yet freed, including this event
  Bytes reserved_bytes = 0;     ///< reserved by a caching allocator at that time; 0: there is none
  /// Running operations, separated by `;`: the phase, then operators and autograd nodes from the outermost
  /// on, then `reload` if the engine reloads a tensor.
  std::string stack;
};

/// Timeline of steps that ran or were simulated. Times count from the start of the first step.
struct Timeline {
  /// Operators are in the order in which they begin, which tells apart operators of zero duration.
  std::vector<Span> spans;
  std::vector<FlowPoint> flows;
  std::vector<CounterSample> counters;
  /// Only for steps that ran: events of at least a thousandth of the peak.
  std::vector<AllocatorEvent> allocator{};
  /// Only if a GPU was traced: it then contains the copies that are otherwise in `spans`.
  std::vector<GpuSpan> gpu{};
};

}  // namespace offprof
