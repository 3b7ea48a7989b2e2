#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace offprof {

/// An operation of a stream: its tick-th one, counted from 1.
struct StreamPoint {
  std::uint32_t stream = 0;
  std::uint64_t tick = 0;
};

/// Number of operations of each stream that something happens after. Streams without an entry count as 0.
class VectorClock {
 public:
  bool covers(StreamPoint point) const {
    return point.stream < ticks_.size() && ticks_[point.stream] >= point.tick;
  }

  void join(const VectorClock& other) {
    if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
    for (std::size_t i = 0; i < other.ticks_.size(); ++i) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }

  /// Keeps only what both clocks cover.
  void meet(const VectorClock& other) {
    ticks_.resize(std::min(ticks_.size(), other.ticks_.size()));
    for (std::size_t i = 0; i < ticks_.size(); ++i) ticks_[i] = std::min(ticks_[i], other.ticks_[i]);
  }

  void reach(StreamPoint point) {
    if (ticks_.size() <= point.stream) ticks_.resize(point.stream + 1);
    ticks_[point.stream] = std::max(ticks_[point.stream], point.tick);
  }

 private:
  std::vector<std::uint64_t> ticks_;
};

}  // namespace offprof
