#include "simulator/tuner/plans/plan_bound.h"

#include <algorithm>
#include <utility>

#include "simulator/tuner/plans/keep_times.h"
#include "simulator/tuner/plans/plan_linear_program.h"
#include "simulator/tuner/settings/setting_sweep.h"

namespace offprof {
namespace {

/// More points than this make the relaxation slower and hardly tighter.
constexpr std::size_t kMostPoints = 256;

}  // namespace

PlanRelaxation::PlanRelaxation(const Step& step, const Link& link,
                               const std::vector<MovableVersion>& versions, const LeastMemory& least,
                               std::optional<Bytes> host_memory,
                               std::vector<std::optional<Nanoseconds>> recompute_times)
    : step_(step),
      link_(link),
      versions_(versions),
      least_(least),
      host_memory_(host_memory),
      recompute_times_(std::move(recompute_times)),
      keep_time_(keep_times(step, link)) {
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
    if (keep_time_[instant / 2] < next) continue;
    points_.push_back(instant);
    next = keep_time_[instant / 2] + spacing;
  }
  std::sort(points_.begin(), points_.end());
  points_.erase(std::unique(points_.begin(), points_.end()), points_.end());
}

/// The work between two points is done between them; waits and recomputations only add to it. On a device
/// that computes beside the host, times are those of its stream, which may wait for the host as well.
void PlanRelaxation::note_times() {
  Work before;
  for (std::size_t k = 0; k < points_.size(); ++k) {
    if (step_.work().empty()) {
      earliest_.push_back(keep_time_[points_[k] / 2]);
      least_span_.push_back(k > 0 ? earliest_[k] - earliest_[k - 1] : 0);
      continue;
    }
    Work between;
    for (std::size_t i = k > 0 ? points_[k - 1] / 2 + 1 : 0; i <= points_[k] / 2; ++i)
      between = then(between, step_.work()[i]);
    before = then(before, between);
    earliest_.push_back(std::max({Nanoseconds{0}, before.stream_ns, before.path_ns}));
    least_span_.push_back(std::max<Nanoseconds>(0, between.stream_ns));
  }
  earliest_.back() = keep_time_.back();
  const auto is_unpack = [](const Event& event) { return event.kind == EventKind::kUnpack; };
  const auto unpack = std::ranges::find_if(step_.events(), is_unpack);
  first_unpack_ = point_at_or_before(2 * static_cast<std::size_t>(unpack - step_.events().begin()));
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
