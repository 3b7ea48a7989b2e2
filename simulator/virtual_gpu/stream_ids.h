#pragma once

namespace offprof {

/// A stream as its caller names it, a cudaStream_t. nullptr is the legacy default stream; callers pass that
/// for cudaStreamLegacy too.
using StreamId = const void*;
/// An event as its caller names it, a cudaEvent_t.
using EventId = const void*;

/// What a stream has to do with the legacy default stream.
enum class StreamKind {
  kNonBlocking,  ///< nothing: cudaStreamNonBlocking, as PyTorch makes them
  kBlocking,     ///< its work and that of the legacy default stream wait for each other, in the order of the
                 ///< calls
};

}  // namespace offprof
