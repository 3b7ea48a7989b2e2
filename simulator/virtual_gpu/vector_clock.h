#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <vector>

namespace offprof {

/// An operation of a stream: the tick-th that it was given, from 1.
struct StreamPoint {
  std::uint32_t stream = 0;
  std::uint64_t tick = 0;
};

/// For each stream, up to which operation something happens after it. Streams not named: none.
class VectorClock {
 public:
  bool covers(StreamPoint point) const {
    return point.stream < ticks_.size() && ticks_[point.stream] >= point.tick;
  }

  void join(const VectorClock& other) {
    if (ticks_.size() < other.ticks_.size()) ticks_.resize(other.ticks_.size());
    for (std::size_t i = 0; i < other.ticks_.size(); ++i) ticks_[i] = std::max(ticks_[i], other.ticks_[i]);
  }

  /// What both of them cover.
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
