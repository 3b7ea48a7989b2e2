#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// The rows of a trace. Waits for copies are on the compute track, waits for the host to launch beside it.
enum class Track : std::uint8_t { kCompute, kD2h, kH2d, kLaunchGaps, kDiskWrite, kDiskRead };

/// The name of waits on Track::kLaunchGaps.
inline constexpr const char* kWaitForLaunch = "wait for launch";
/// The names of waits for a copy, and of the part before the link has come to it, where that is known.
inline constexpr const char* kWaitForCopyOut = "wait for copy out";
inline constexpr const char* kWaitForCopyIn = "wait for copy in";
inline constexpr const char* kWaitForLink = "wait for link";

inline constexpr const char* kWaitForDisk = "wait for disk";

/// Of transfers on the tracks of the disk.
constexpr const char* disk_transfer_name(Track track) {
  return track == Track::kDiskWrite ? "disk write" : "disk read";
}

/// The name of waits for a copy, or a transfer, of that direction.
constexpr const char* wait_name(Track copy_track) {
  if (copy_track == Track::kDiskWrite || copy_track == Track::kDiskRead) return kWaitForDisk;
  return copy_track == Track::kD2h ? kWaitForCopyOut : kWaitForCopyIn;
}

enum class SpanKind : std::uint8_t {
  kStep,   ///< one training step, `ProfilerStep#n`
  kPhase,  ///< forward, backward, optimizer
  kOp,     ///< an operator, or an autograd node
  kCopy,   ///< on a copy track
  kWait,   ///< the compute track stands still
};

/// Something with a beginning and an end on one track. Spans of one track nest or follow, they never cross.
struct Span {
  Track track = Track::kCompute;
  SpanKind kind = SpanKind::kOp;
  std::string name;
  Nanoseconds begin_ns = 0;
  Nanoseconds duration_ns = 0;
  Bytes bytes = 0;           ///< copies: how much
  std::int64_t tensor = -1;  ///< copies and waits: the saved tensor it is for, an index in Program::saved
  std::string reason;        ///< waits: why
  std::optional<Track> copy_track{};  ///< waits: the track of the copy; nullopt: for launch, or not known
  /// Operators: it is within another. Only needed where it takes no time, since then the times do not tell.
  bool is_nested = false;
  std::int64_t external_id = 0;  ///< operators: that of GPU work done for them; 0: none was traced
};

/// What a saved tensor passed through, in time: an arrow's point. The points of one (step, copy) make a chain
/// pack -> copy out -> copy in -> unpack.
struct FlowPoint {
  std::int64_t flow = 0;  ///< the same number for the points of one chain
  Track track = Track::kCompute;
  Nanoseconds at_ns = 0;
  std::string name;  ///< `pack`, `copy out`, `copy in`, `unpack`
  std::optional<std::uint32_t>
      stream{};  ///< instead of `track`: the GPU's stream, of a copy in Timeline::gpu
};

enum class GpuSpanKind : std::uint8_t {
  kKernel,
  kCopy,
  kSet,
  kCall,  ///< of the CUDA API, by the host
};

/// What the tracer of a GPU saw. Spans of one stream follow one another.
struct GpuSpan {
  GpuSpanKind kind = GpuSpanKind::kKernel;
  /// Kernels: demangled. Copies: `Memcpy DtoH (Device -> Pinned)`, sets: `Memset (Device)`, as PyTorch's
  /// profiler has them. Calls: the function.
  std::string name{};
  std::uint32_t row = 0;  ///< the stream; of calls, the host's thread, counted from 0
  Nanoseconds begin_ns = 0;
  Nanoseconds duration_ns = 0;
  Bytes bytes = 0;                              ///< copies and sets
  std::int64_t correlation = 0;                 ///< a call and what it asked for have the same; 0: not known
  std::int64_t external_id = 0;                 ///< that of the operator that it is for; 0: for none
  std::int64_t tensor = -1;                     ///< copies: as in Span
  std::array<std::int32_t, 3> grid{}, block{};  ///< kernels: blocks, threads of a block
  /// Copies of saved tensors: so long before its beginning its stream had come to it.
  Nanoseconds lead_ns = 0;
};

/// The value of a counter from here on.
struct CounterSample {
  std::string name;  ///< `device_bytes`, `device_reserved_bytes`, `host_bytes`
  Nanoseconds at_ns = 0;
  std::int64_t value = 0;
};

/// The device's allocator gave memory, or took it back.
struct AllocatorEvent {
  Nanoseconds at_ns = 0;
  std::int64_t allocation = 0;  ///< the same where it is given and where it is taken back
  Bytes bytes = 0;              ///< negative where it is taken back
  Bytes allocated_bytes = 0;    ///< given and not yet taken back, this included
  Bytes reserved_bytes = 0;     ///< what a caching allocator holds of the device then; 0: there is none
  /// What was running, with `;` between: the phase, then operators and autograd nodes, outermost first, then
  /// `reload` where the engine brings a tensor back.
  std::string stack;
};

/// What happened when, in steps that ran or were simulated. Times count from the first step's beginning.
struct Timeline {
  /// Operators come in the order in which they begin: by it those are told apart that take no time.
  std::vector<Span> spans;
  std::vector<FlowPoint> flows;
  std::vector<CounterSample> counters;
  /// Of steps that ran: those of a thousandth of the peak and more.
  std::vector<AllocatorEvent> allocator{};
  /// Where a GPU was traced: it has the copies that `spans` have otherwise.
  std::vector<GpuSpan> gpu{};
};

}  // namespace offprof
