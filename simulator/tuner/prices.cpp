#include "simulator/tuner/prices.h"

#include <algorithm>

#include "simulator/replay/replay.h"

namespace offprof {
namespace {

/// Bandwidth so high that a copy takes practically no time.
constexpr double kEndlessRate = 1e18;

Link relieved(Link link, Constraint constraint) {
  switch (constraint) {
    case Constraint::kD2hBandwidth:
      link.d2h.bytes_per_second = kEndlessRate;
      link.bidirectional_bytes_per_second = 0;
      break;
    case Constraint::kH2dBandwidth:
      link.h2d.bytes_per_second = kEndlessRate;
      link.bidirectional_bytes_per_second = 0;
      break;
    case Constraint::kLatency:
      link.d2h.latency_ns = link.h2d.latency_ns = 0;
      link.d2h.start_ns = link.h2d.start_ns = 0;
      break;
    case Constraint::kLaunch:
      link.launch_ns = 0;
      break;
  }
  return link;
}

Nanoseconds step_time(const Step& step, const Policy& policy, const Link& link) {
  return *replay(step, policy, link).metrics.step_time_ns;
}

class HostFullListener final : public ReplayListener {
 public:
  void on_placement(SavedId, const PackDecision& decision) override {
    const bool found_none = decision.reason == PlacementReason::kDiskFull && decision.place == Place::kDevice;
    is_full_ |= decision.reason == PlacementReason::kHostFull || found_none;
  }
  bool is_full() const { return is_full_; }

 private:
  bool is_full_ = false;
};

}  // namespace

bool fills_host(const Step& step, const Policy& policy) {
  HostFullListener listener;
  replay(step, policy, kAnyLink, &listener);
  return listener.is_full();
}

std::vector<Relief> reliefs_of(const Step& step, const Policy& policy, const Link& link) {
  const Nanoseconds time = step_time(step, policy, link);
  std::vector<Relief> reliefs;
  for (const Constraint constraint :
       {Constraint::kD2hBandwidth, Constraint::kH2dBandwidth, Constraint::kLatency, Constraint::kLaunch}) {
    const Nanoseconds gain = time - step_time(step, policy, relieved(link, constraint));
    if (gain > 0) reliefs.push_back({constraint, gain});
  }
  std::stable_sort(reliefs.begin(), reliefs.end(),
                   [](const Relief& a, const Relief& b) { return a.gain_ns > b.gain_ns; });
  return reliefs;
}

std::optional<MemoryPrice> memory_price(const std::vector<Candidate>& frontier, const Candidate& chosen) {
  std::optional<MemoryPrice> best;
  const auto per_byte = [](const MemoryPrice& price) {
    return static_cast<double>(price.gain_ns) / static_cast<double>(price.more_bytes);
  };
  for (const Candidate& candidate : frontier) {
    const MemoryPrice price{device_bytes_taken(candidate.predicted) - device_bytes_taken(chosen.predicted),
                            *chosen.predicted.step_time_ns - *candidate.predicted.step_time_ns};
    if (price.more_bytes <= 0 || price.gain_ns <= 0) continue;
    if (!best || per_byte(price) > per_byte(*best)) best = price;
  }
  return best;
}

Link times_as_fast(Link link, double factor) {
  link.d2h.bytes_per_second *= factor;
  link.h2d.bytes_per_second *= factor;
  link.bidirectional_bytes_per_second *= factor;
  return link;
}

}  // namespace offprof
