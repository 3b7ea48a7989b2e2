#include "traces/analysis/timeline_diff.h"

#include <algorithm>
#include <cstdlib>
#include <map>
#include <tuple>
#include <utility>

namespace offprof {
namespace {

/// Operator that is not nested in another.
struct Op {
  const Span* span;
  std::string phase;
  Nanoseconds waits = 0;
};

struct LaunchWait {
  const Span* span;
  std::string phase;
};

/// Parts of the last step of a timeline.
class StepView {
 public:
  /// `step` must be one of the timeline's spans.
  StepView(const Timeline& timeline, const Span& step) : step_(step) {
    for (const Span& span : timeline.spans)
      if (span.kind != SpanKind::kStep && is_within(span, step)) spans_.push_back(&span);
    // For operators that begin at the same time, the timeline has the order of the step program.
    const auto parents_first = [](const Span* a, const Span* b) {
      return std::tuple(a->begin_ns, a->kind) < std::tuple(b->begin_ns, b->kind);
    };
    std::ranges::stable_sort(spans_, parents_first);
    for (const Span* span : spans_) add(*span);
  }

  Nanoseconds duration() const { return step_.duration_ns; }
  Nanoseconds since_begin(const Span& span) const { return span.begin_ns - step_.begin_ns; }
  const std::vector<const Span*>& phases() const { return phases_; }
  const std::vector<Op>& ops() const { return ops_; }
  const std::vector<const Span*>& waits() const { return waits_; }
  const std::vector<LaunchWait>& launch_waits() const { return launch_waits_; }
  const std::vector<const Span*>& copies() const { return copies_; }

 private:
  static Nanoseconds end_of(const Span& span) { return span.begin_ns + span.duration_ns; }
  static bool is_within(const Span& span, const Span& parent) {
    return span.begin_ns >= parent.begin_ns && span.begin_ns < end_of(parent);
  }

  void add(const Span& span) {
    if (span.track == Track::kLaunchGaps) {
      launch_waits_.push_back({&span, phase_of(span)});
    } else if (span.kind == SpanKind::kCopy) {
      copies_.push_back(&span);
    } else if (span.kind == SpanKind::kPhase) {
      if (phases_.empty() || !is_within(span, *phases_.back())) phases_.push_back(&span);
    } else if (span.kind == SpanKind::kOp) {
      if (!is_in_an_op(span)) ops_.push_back({&span, phase_of(span)});
    } else if (waits_.empty() || !is_within(span, *waits_.back())) {
      waits_.push_back(&span);
      if (!ops_.empty() && is_within(span, *ops_.back().span)) ops_.back().waits += span.duration_ns;
    }
  }
  /// Returns true if the span is nested in the last operator. The flag decides for an operator of zero
  /// duration between two others, whose times would match both cases.
  bool is_in_an_op(const Span& span) const {
    return span.is_nested || (!ops_.empty() && is_within(span, *ops_.back().span));
  }
  std::string phase_of(const Span& span) const {
    return !phases_.empty() && is_within(span, *phases_.back()) ? phases_.back()->name : "";
  }

  const Span& step_;
  std::vector<const Span*> spans_;
  std::vector<const Span*> phases_;
  std::vector<Op> ops_;
  std::vector<const Span*> waits_;
  std::vector<LaunchWait> launch_waits_;
  std::vector<const Span*> copies_;
};

std::optional<StepView> last_step(const Timeline& timeline) {
  const Span* last = nullptr;
  for (const Span& span : timeline.spans)
    if (span.kind == SpanKind::kStep && (last == nullptr || span.begin_ns > last->begin_ns)) last = &span;
  if (last == nullptr) return std::nullopt;
  return StepView(timeline, *last);
}

enum class Side : std::uint8_t { kBase, kNow };

template <typename Pair, typename Amount>
void add_to(Pair& pair, Side side, Amount amount) {
  (side == Side::kBase ? pair.base : pair.now) += amount;
}

/// Returns the values of a map for which `differs` is true, the largest difference first. Moves them out of
/// the map.
template <typename Map, typename Differs>
auto largest_first(Map& by_key, const Differs& differs) {
  std::vector<typename Map::mapped_type> all;
  for (auto& [key, value] : by_key)
    if (differs(value)) all.push_back(std::move(value));
  std::ranges::stable_sort(all, [](const auto& a, const auto& b) {
    return std::abs(a.time.difference()) > std::abs(b.time.difference());
  });
  return all;
}

/// Adds up both sides by matching operators, waits and copies.
class Comparison {
 public:
  TimelineDiff compare(const StepView& base, const StepView& now) {
    add(base, Side::kBase);
    add(now, Side::kNow);
    diff_.rest = {diff_.step.base - diff_.operators.base - diff_.waits.base,
                  diff_.step.now - diff_.operators.now - diff_.waits.now};
    add_outside();
    const auto any_time = [](const auto& value) { return value.time.difference() != 0; };
    const auto any = [&](const auto& value) {
      return any_time(value) || value.count.base != value.count.now;
    };
    diff_.ops = largest_first(ops_, any);
    diff_.wait_differences = largest_first(waits_, any);
    diff_.places = largest_first(places_, any_time);
    for (auto& [track, copies] : copies_) diff_.copies.push_back(copies);
    return std::move(diff_);
  }

 private:
  using WaitKey = std::pair<std::string, std::int64_t>;

  void add(const StepView& view, Side side) {
    add_to(diff_.step, side, view.duration());
    for (const Span* phase : view.phases()) add_to(phase_named(phase->name).time, side, phase->duration_ns);
    std::map<std::pair<std::string, std::string>, std::int64_t> occurrences;
    for (const Op& op : view.ops()) {
      add_op(view, op, ++occurrences[{op.phase, op.span->name}], side);
    }
    const Span* before = nullptr;
    for (const Span* wait : view.waits()) add_wait(*wait, std::exchange(before, wait), side);
    for (const LaunchWait& wait : view.launch_waits()) add_launch_wait(wait, side);
    for (const Span* copy : view.copies()) add_copy(*copy, side);
  }

  PhaseDifference& phase_named(const std::string& name) {
    const auto found = std::ranges::find(diff_.phases, name, &PhaseDifference::name);
    return found != diff_.phases.end() ? *found : diff_.phases.emplace_back(PhaseDifference{name, {}});
  }

  void add_op(const StepView& view, const Op& op, std::int64_t occurrence, Side side) {
    const Nanoseconds own = op.span->duration_ns - op.waits;
    add_to(diff_.operators, side, own);
    OpTimeDifference& by_name = ops_[op.span->name];
    by_name.op = op.span->name;
    add_to(by_name.count, side, 1);
    add_to(by_name.time, side, own);
    PlaceDifference& place = places_[{op.phase, op.span->name, occurrence}];
    place.phase = op.phase;
    place.op = op.span->name;
    place.occurrence = occurrence;
    (side == Side::kBase ? place.base_at : place.now_at) = view.since_begin(*op.span);
    add_to(place.time, side, op.span->duration_ns);
    add_to(place.waits, side, op.waits);
  }

  /// Returns the common name of a wait and its tensor. The span's own name does not do, because a simulation
  /// names the parts of one wait differently.
  static WaitKey key_of(const Span& wait) {
    return {wait.copy_track ? wait_name(*wait.copy_track) : wait.name, wait.tensor};
  }

  /// Adds a wait. `before` is the previous wait of the same side, or nullptr.
  void add_wait(const Span& span, const Span* before, Side side) {
    add_to(diff_.waits, side, span.duration_ns);
    if (span.duration_ns == 0) return;
    const WaitKey key = key_of(span);
    WaitDifference& wait = waits_[key];
    std::tie(wait.name, wait.tensor) = key;
    add_reason(side == Side::kBase ? wait.base_reason : wait.now_reason, span.reason);
    const bool goes_on = before != nullptr && key_of(*before) == key &&
                         before->begin_ns + before->duration_ns == span.begin_ns;
    add_to(wait.count, side, goes_on ? 0 : 1);
    add_to(wait.time, side, span.duration_ns);
  }

  static void add_reason(std::string& reasons, const std::string& reason) {
    if (reasons.find(reason) != std::string::npos) return;
    reasons += (reasons.empty() ? "" : "; ") + reason;
  }

  void add_launch_wait(const LaunchWait& wait, Side side) {
    auto& all = diff_.launch_waits;
    auto found = std::ranges::find(all, wait.phase, &LaunchDifference::phase);
    if (found == all.end()) found = all.insert(all.end(), LaunchDifference{wait.phase, {}, {}});
    add_to(found->count, side, 1);
    add_to(found->time, side, wait.span->duration_ns);
  }

  void add_copy(const Span& span, Side side) {
    CopyDifference& copies = copies_[span.track];
    copies.track = span.track;
    add_to(copies.count, side, 1);
    add_to(copies.bytes, side, span.bytes);
    add_to(copies.busy, side, span.duration_ns);
  }

  void add_outside() {
    TimePair outside = diff_.step;
    for (const PhaseDifference& phase : diff_.phases) {
      outside.base -= phase.time.base;
      outside.now -= phase.time.now;
    }
    if (outside != TimePair{}) diff_.phases.push_back({"", outside});
  }

  TimelineDiff diff_;
  std::map<std::string, OpTimeDifference> ops_;
  std::map<WaitKey, WaitDifference> waits_;
  std::map<Track, CopyDifference> copies_;
  std::map<std::tuple<std::string, std::string, std::int64_t>, PlaceDifference> places_;
};

}  // namespace

bool shows_a_step(const Timeline& timeline) {
  return std::ranges::any_of(timeline.spans, [](const Span& span) { return span.kind == SpanKind::kStep; });
}

std::optional<TimelineDiff> compare(const Timeline& base, const Timeline& now) {
  const auto base_step = last_step(base), now_step = last_step(now);
  if (!base_step || !now_step) return std::nullopt;
  return Comparison().compare(*base_step, *now_step);
}

}  // namespace offprof
