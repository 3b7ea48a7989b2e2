#include "simulator/tuner/plans/keep_times.h"

#include <utility>

#include "simulator/replay/replay.h"

namespace offprof {
namespace {

class TimeListener final : public ReplayListener {
 public:
  void on_event(std::size_t, Nanoseconds now) override { times_.push_back(now); }
  std::vector<Nanoseconds> take() { return std::move(times_); }

 private:
  std::vector<Nanoseconds> times_;
};

}  // namespace

std::vector<Nanoseconds> keep_times(const Step& step, const Link& link) {
  TimeListener listener;
  const Prediction keep = replay(step, preset_policy("keep"), link, &listener);
  std::vector<Nanoseconds> times = listener.take();
  times.push_back(*keep.metrics.step_time_ns);
  return times;
}

}  // namespace offprof
