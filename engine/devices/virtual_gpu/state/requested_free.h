#pragma once

#include <cstdint>
#include <unordered_set>
#include <utility>
#include <vector>

#include "engine/devices/virtual_gpu/races/stream_ids.h"

namespace offprof {

/// Finds the events that PyTorch's caching allocator records for a block that it is asked to free while other
/// streams use it. Nothing tells which streams those are: operators and autograd register them in ways that
/// cannot be observed. But the first event that is recorded after the request is the allocator's, and so are
/// all that are recorded by the same instruction.
class RequestedFree {
 public:
  /// The allocator is asked to free a block.
  void begin() {
    is_open_ = true;
    points_.clear();
  }
  /// It has freed the block at once.
  void end() { is_open_ = false; }
  /// The code at `caller` has recorded an event, which is noted as `point`; -1: it is not noted.
  void event_recorded(const void* caller, EventId event, std::int32_t point) {
    if (is_open_ && points_.empty()) callers_.insert(caller);
    if (!callers_.contains(caller)) return;
    events_.insert(event);
    if (is_open_) points_.push_back(point);
  }
  /// Returns true for an event of the allocator's. It looks whether they have been reached, and never waits.
  bool is_of_allocator(EventId event) const { return events_.contains(event); }
  /// Returns the points up to which streams use the block. Called before the allocator is asked anything
  /// else.
  std::vector<std::int32_t> take_points() {
    is_open_ = false;
    return std::exchange(points_, {});
  }

 private:
  bool is_open_ = false;
  std::unordered_set<const void*> callers_;
  std::unordered_set<EventId> events_;
  std::vector<std::int32_t> points_;
};

}  // namespace offprof
