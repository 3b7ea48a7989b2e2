#include "simulator/tuner/plans/plan_bound.h"

#include <algorithm>
#include <limits>

#include "simulator/replay/replay.h"
#include "simulator/tuner/plans/plan_linear_program.h"
#include "simulator/tuner/settings/setting_sweep.h"

namespace offprof {
namespace {

/// More points than this make the relaxation slower and hardly tighter.
constexpr std::size_t kMostPoints = 256;

/// Records when a step that keeps all tensors reaches each instant.
class TimeListener final : public ReplayListener {
 public:
  void on_event(std::size_t, Nanoseconds now) override { times_.insert(times_.end(), 2, now); }
  std::vector<Nanoseconds> take() { return std::move(times_); }

 private:
  std::vector<Nanoseconds> times_;
};

/// Returns the least duration of the work, over every lead that the host may have at its beginning
/// (traces/model/work.h).
Nanoseconds least_duration(const Work& work) {
  return std::max<Nanoseconds>(
      0, std::min(std::max(work.stream_ns, work.wait_ns), std::max(work.host_ns, work.path_ns)));
}

}  // namespace

PlanRelaxation::PlanRelaxation(const Step& step, const Link& link,
                               const std::vector<MovableVersion>& versions, const LeastMemory& least,
                               std::optional<Bytes> host_memory)
    : step_(step), link_(link), versions_(versions), least_(least), host_memory_(host_memory) {
  TimeListener listener;
  const Prediction keep = replay(step, preset_policy("keep"), link, &listener);
  keep_time_ = listener.take();
  keep_time_.push_back(*keep.metrics.step_time_ns);
  host_path_ = step.work().empty() ? keep_time_.back() : host_path(step);
  mark_points();
  note_times();
}

/// The points are the beginning, the end, the last save, the first unpack, and others spaced about evenly in
/// time.
void PlanRelaxation::mark_points() {
  const auto events = step_.events();
  points_ = {0, 2 * events.size()};
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events[e].kind == EventKind::kUnpack) {
      points_.push_back(2 * e);
      break;
    }
  }
  for (std::size_t e = events.size(); e-- > 0;) {
    if (events[e].kind == EventKind::kPack) {
      points_.push_back(2 * e + 1);
      break;
    }
  }
  const Nanoseconds spacing = keep_time_.back() / static_cast<Nanoseconds>(kMostPoints) + 1;
  Nanoseconds next = 0;
  for (std::size_t e = 0; e < events.size(); ++e) {
    if (events[e].kind != EventKind::kPack && events[e].kind != EventKind::kUnpack) continue;
    const std::size_t instant = 2 * e + (events[e].kind == EventKind::kUnpack ? 1 : 0);
    if (keep_time_[instant] < next) continue;
    points_.push_back(instant);
    next = keep_time_[instant] + spacing;
  }
  std::sort(points_.begin(), points_.end());
  points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
}

/// The work between two points is done between them; waits only add to it.
void PlanRelaxation::note_times() {
  least_span_.assign(points_.size(), 0);
  for (std::size_t k = 1; k < points_.size(); ++k) {
    if (step_.work().empty()) {
      least_span_[k] = keep_time_[points_[k]] - keep_time_[points_[k - 1]];
      continue;
    }
    Work between;
    for (std::size_t i = points_[k - 1] / 2 + 1; i <= points_[k] / 2; ++i)
      between = then(between, step_.work()[i]);
    least_span_[k] = least_duration(between);
  }
}

std::size_t PlanRelaxation::point_at_or_before(std::size_t instant) const {
  const auto above = std::upper_bound(points_.begin(), points_.end(), instant);
  return static_cast<std::size_t>(above - points_.begin()) - 1;
}

std::size_t PlanRelaxation::point_at_or_after(std::size_t instant) const {
  return static_cast<std::size_t>(std::lower_bound(points_.begin(), points_.end(), instant) -
                                  points_.begin());
}

PlanBound PlanRelaxation::least_time(Bytes peak, Nanoseconds known) const {
  return PlanLinearProgram(*this, {peak, std::nullopt, static_cast<double>(known)}).solve();
}

PlanBound PlanRelaxation::least_peak(Nanoseconds time, Bytes known) const {
  return PlanLinearProgram(*this, {std::nullopt, time, static_cast<double>(known)}).solve();
}

}  // namespace offprof
