#pragma once

#include <gtest/gtest.h>

#include <array>
#include <ostream>
#include <vector>

#include "engine/devices/virtual_gpu/races/stream_races.h"

namespace offprof {

inline void PrintTo(const StreamHazard& hazard, std::ostream* out) {
  *out << hazard.what << "\n  first:  " << hazard.first << "\n  second: " << hazard.second;
}

inline constexpr Bytes kBlock = 1024;

/// Handles of streams and events: only their addresses matter.
inline constexpr char kHandles[5] = {};
inline constexpr StreamId kCompute = nullptr, kOut = &kHandles[0], kIn = &kHandles[1], kOther = &kHandles[2];

/// Computes on the legacy default stream, as PyTorch does, and copies out and in on non-blocking streams.
class StreamRaceTest : public testing::Test {
 protected:
  StreamRaceTest() {
    order_.stream_created(kOut, StreamKind::kNonBlocking);
    order_.stream_created(kIn, StreamKind::kNonBlocking);
    for (EventId event : {event_, other_event_}) order_.event_created(event);
  }

  const char* block(Bytes index) const { return device_.data() + index * kBlock; }
  const char* piece(Bytes index) const { return host_.data() + index * kBlock; }

  void hand_out(Bytes index, StreamId stream = kCompute) {
    order_.block_allocated(block(index), kBlock, stream);
  }
  void give_back(Bytes index) { order_.block_freed(block(index)); }
  void copy_out(Bytes to_piece, Bytes from_block, StreamId stream = kOut) {
    order_.copy(stream, {piece(to_piece), MemoryPlace::kPinned}, {block(from_block), MemoryPlace::kDevice},
                kBlock);
  }
  void copy_in(Bytes to_block, Bytes from_piece, StreamId stream = kIn) {
    order_.copy(stream, {block(to_block), MemoryPlace::kDevice}, {piece(from_piece), MemoryPlace::kPinned},
                kBlock);
  }

  /// Orders later work of `later` after the work that `earlier` was given so far.
  void follow(StreamId later, StreamId earlier) {
    order_.event_recorded(event_, earlier);
    order_.stream_waits(later, event_);
  }

  /// Hands out a block that a kernel writes, and copies it out to the piece. Nobody waits for the copy.
  void start_copy_out(Bytes to_piece, Bytes from_block) {
    hand_out(from_block);
    order_.kernel(kCompute, "gelu");
    follow(kOut, kCompute);
    copy_out(to_piece, from_block);
  }

  std::vector<StreamHazard> hazards() { return order_.take_hazards(); }

  std::array<char, 16 * kBlock> device_{}, host_{};
  EventId event_ = &kHandles[3], other_event_ = &kHandles[4];
  StreamRace order_;
};

}  // namespace offprof
