#include "engine/devices/virtual_gpu/races/stream_clocks.h"

namespace offprof {
namespace {

constexpr StreamClocks::Index kLegacyStream = 0;

}  // namespace

StreamClocks::StreamClocks() : streams_(1), indices_{{nullptr, kLegacyStream}} {}

void StreamClocks::created(StreamId stream, StreamKind kind) {
  indices_.erase(stream);
  kinds_[stream] = kind;
}

void StreamClocks::destroyed(StreamId stream) {
  kinds_.erase(stream);
  const auto found = indices_.find(stream);
  if (found == indices_.end()) return;
  streams_[found->second].in_use = false;
  indices_.erase(found);
}

StreamClocks::Index StreamClocks::index(StreamId stream) {
  const auto [found, is_new] = indices_.try_emplace(stream, static_cast<Index>(streams_.size()));
  if (!is_new) return found->second;
  const auto kind = kinds_.find(stream);
  Stream& added = streams_.emplace_back();
  added.kind = kind == kinds_.end() ? StreamKind::kNonBlocking : kind->second;
  if (added.kind == StreamKind::kBlocking) blocking_.push_back(found->second);
  return found->second;
}

void StreamClocks::catch_up(Index stream) {
  Stream& self = streams_[stream];
  self.in_use = true;
  self.order.join(host_);
  const auto follow = [&](const Stream& other) {
    self.order.join(other.order);
    self.waited.join(other.waited);
  };
  if (stream == kLegacyStream) {
    for (const Index other : blocking_) follow(streams_[other]);
  } else if (self.kind == StreamKind::kBlocking) {
    follow(streams_[kLegacyStream]);
  }
}

StreamPoint StreamClocks::enqueue(Index stream) {
  catch_up(stream);
  Stream& self = streams_[stream];
  const StreamPoint point{stream, ++self.tick};
  self.order.reach(point);
  self.waited.reach(point);
  return point;
}

VectorClock StreamClocks::next_order(Index stream) const {
  VectorClock order = streams_[stream].order;
  order.join(host_);
  if (stream == kLegacyStream) {
    for (const Index other : blocking_) order.join(streams_[other].order);
  } else if (streams_[stream].kind == StreamKind::kBlocking) {
    order.join(streams_[kLegacyStream].order);
  }
  return order;
}

StreamClocks::Record StreamClocks::record(Index stream) {
  const StreamPoint point = enqueue(stream);
  return {point, streams_[stream].order, streams_[stream].waited};
}

bool StreamClocks::wait(Index stream, const Record& record) {
  catch_up(stream);
  Stream& self = streams_[stream];
  if (self.waited.covers(record.point)) return false;
  self.order.join(record.order);
  self.waited.join(record.waited);
  return true;
}

void StreamClocks::host_reached_device() {
  for (const Stream& stream : streams_) host_.join(stream.order);
}

VectorClock StreamClocks::floor() const {
  VectorClock floor;
  bool is_first = true;
  for (const Stream& stream : streams_) {
    if (!stream.in_use) continue;
    if (is_first) floor = stream.order;
    floor.meet(stream.order);
    is_first = false;
  }
  floor.join(host_);
  return floor;
}

}  // namespace offprof
