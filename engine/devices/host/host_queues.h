#pragma once

#include <functional>
#include <memory>
#include <utility>

#include "engine/copies/copy_stream.h"
#include "engine/devices/disk/tiered_device_disk.h"

namespace offprof {

/// Copy queues that are threads, which call the work. The compute stream is the calling thread.
class HostQueues final : public DeviceQueues {
 public:
  /// The streams and `exposed_ns`, to which stall time is added, must outlive this object.
  HostQueues(CopyStream& d2h, CopyStream& h2d, Nanoseconds& exposed_ns)
      : d2h_(d2h), h2d_(h2d), exposed_ns_(exposed_ns) {}

  std::unique_ptr<QueuePoint> call(CopyQueue queue, std::function<void()> work) override {
    return std::make_unique<Point>(*this, queue, stream(queue).call(std::move(work)));
  }
  std::unique_ptr<QueuePoint> call_beside_compute(std::function<void()> work) override {
    work();
    return nullptr;
  }
  void finish_calls() override {
    for (CopyStream* stream : {&d2h_, &h2d_}) stream->wait(stream->call([] {}));
  }
  void add_exposed(Nanoseconds waited) override { exposed_ns_ += waited; }

 private:
  class Point final : public QueuePoint {
   public:
    Point(HostQueues& queues, CopyQueue queue, CopyStream::Event event)
        : queues_(queues), stream_(queues.stream(queue)), event_(event) {}
    void wait() override { stream_.wait(event_); }
    void hold(CopyQueue queue) override {
      queues_.stream(queue).call([&stream = stream_, event = event_] { stream.wait(event); });
    }

   private:
    HostQueues& queues_;
    const CopyStream& stream_;
    CopyStream::Event event_;
  };

  CopyStream& stream(CopyQueue queue) { return queue == CopyQueue::kD2h ? d2h_ : h2d_; }

  CopyStream& d2h_;
  CopyStream& h2d_;
  Nanoseconds& exposed_ns_;
};

}  // namespace offprof
