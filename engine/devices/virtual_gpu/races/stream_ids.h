#pragma once

namespace offprof {

/// A stream as its caller names it, a cudaStream_t. nullptr is the legacy default stream; callers also pass
/// nullptr for cudaStreamLegacy.
using StreamId = const void*;
/// An event as its caller names it, a cudaEvent_t.
using EventId = const void*;

/// Relation of a stream to the legacy default stream.
enum class StreamKind {
  kNonBlocking,  ///< none: cudaStreamNonBlocking, as PyTorch creates its streams
  kBlocking,     ///< its work and that of the legacy default stream wait for each other, in call order
};

}  // namespace offprof
