#include "simulator/tuner/plans/plan_linear_program.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <limits>
#include <utility>

namespace offprof {
namespace {

/// Upper bound on the solves. Each adds the rows that its solution violates. A relaxation with fewer rows is
/// a valid bound as well.
constexpr int kMostRounds = 40;
/// Parts of the step; each solve adds at most one memory row for each of them, for its worst violation.
constexpr std::size_t kPartsOfStep = 24;
/// Number of deadlines that copies out are grouped by, and of releases that copies in are grouped by.
constexpr std::size_t kMostClasses = 6;
/// Columns are scaled to this size.
constexpr double kScale = 1000;
constexpr double kTolerance = 1e-5;
/// Margin above a value known to be reachable, so that the solver does not take the optimum for infeasible.
constexpr double kHeadroom = 1.01;

/// Returns an even selection of the values, including the first and the last.
std::vector<std::size_t> thinned(std::vector<std::size_t> values) {
  std::sort(values.begin(), values.end());
  values.erase(std::unique(values.begin(), values.end()), values.end());
  if (values.size() <= kMostClasses) return values;
  std::vector<std::size_t> some;
  for (std::size_t i = 0; i < kMostClasses; ++i)
    some.push_back(values[i * (values.size() - 1) / (kMostClasses - 1)]);
  return some;
}

}  // namespace

PlanLinearProgram::PlanLinearProgram(const PlanRelaxation& relaxation, const Question& question)
    : of_(relaxation),
      question_(question),
      moved_(relaxation.versions_.size(), kNoEvent),
      recomputed_(relaxation.versions_.size(), kNoEvent),
      has_memory_row_(relaxation.step_.events().size(), 0) {
  const double time = question.time ? static_cast<double>(*question.time) : question.known;
  const double peak = question.peak ? static_cast<double>(*question.peak) : question.known;
  time_unit_ = std::max(time / kScale, 1.0);
  byte_unit_ = std::max(peak / kScale, 1.0);
  add_columns();
  add_time_rows();
  add_choice_rows();
  const std::vector<Copy> out = copies_out(), in = copies_in();
  std::vector<std::size_t> deadlines, releases;
  for (const Copy& copy : out) deadlines.push_back(copy.deadline);
  for (const Copy& copy : in) releases.push_back(copy.release);
  for (const std::size_t deadline : thinned(deadlines)) add_copies_out(out, deadline);
  for (const std::size_t release : thinned(releases)) add_copies_in(in, release);
  add_launch_row();
  add_host_row();
}

void PlanLinearProgram::add_columns() {
  for (const LeastMemory::Gap& gap : of_.least_.gaps) {
    if (moved_[gap.version] != kNoEvent) continue;
    moved_[gap.version] = program_.add_column(0, 0, 1);
    if (of_.can_recompute(gap.version)) recomputed_[gap.version] = program_.add_column(0, 0, 1);
  }
  const double latest = question_.time ? static_cast<double>(*question_.time) / time_unit_
                                       : kHeadroom * question_.known / time_unit_;
  for (std::size_t k = 0; k < of_.points_.size(); ++k) {
    const bool is_answer = !question_.time && k + 1 == of_.points_.size();
    const double earliest = std::min(static_cast<double>(of_.earliest_[k]) / time_unit_, latest);
    at_.push_back(program_.add_column(is_answer ? 1 : 0, earliest, latest));
  }
  const double most = question_.peak ? static_cast<double>(*question_.peak) / byte_unit_
                                     : kHeadroom * question_.known / byte_unit_;
  const double least =
      question_.peak ? most : std::min(static_cast<double>(of_.least_.peak) / byte_unit_, most);
  peak_ = program_.add_column(question_.peak ? 0 : 1, least, most);
}

/// Returns, by point, the versions that have been recomputed by then, if they are, and not by the point
/// before.
std::vector<LinearProgram::Terms> PlanLinearProgram::recomputed_by_point() const {
  std::vector<LinearProgram::Terms> due(at_.size());
  for (std::size_t v = 0; v < recomputed_.size(); ++v) {
    const std::size_t unpack = of_.versions_[v].last_first_unpack;
    if (recomputed_[v] == kNoEvent || unpack == kNoEvent) continue;
    const auto time = static_cast<double>(*of_.recompute_times_[v]) / time_unit_;
    due[of_.point_at_or_after(2 * unpack + 1)].emplace_back(recomputed_[v], -time);
  }
  return due;
}

/// Recomputations run in backward, at the first unpack of their version or earlier. Between two points the
/// stream has the time for those that run there. Those that have run and are not due yet are carried on.
void PlanLinearProgram::add_time_rows() {
  const std::vector<LinearProgram::Terms> due = recomputed_by_point();
  const bool recomputes = std::ranges::any_of(due, [](const auto& terms) { return !terms.empty(); });
  const double most = program_.upper(at_.back());
  std::size_t ahead = kNoEvent;
  for (std::size_t k = 1; k < at_.size(); ++k) {
    LinearProgram::Terms span = {{at_[k], 1}, {at_[k - 1], -1}};
    if (recomputes && k > of_.first_unpack_) {
      const std::size_t run = program_.add_column(0, 0, most), left = program_.add_column(0, 0, most);
      span.emplace_back(run, -1);
      LinearProgram::Terms balance = due[k];
      balance.insert(balance.end(), {{run, 1}, {left, -1}});
      if (ahead != kNoEvent) balance.emplace_back(ahead, 1);
      program_.add_row(std::move(balance), 0);
      ahead = left;
    }
    program_.add_row(std::move(span), static_cast<double>(of_.least_span_[k]) / time_unit_);
  }
}

/// A version is moved or recomputed, not both.
void PlanLinearProgram::add_choice_rows() {
  for (std::size_t v = 0; v < recomputed_.size(); ++v)
    if (recomputed_[v] != kNoEvent) program_.add_row({{moved_[v], -1}, {recomputed_[v], -1}}, -1);
}

/// A moved version has been copied out before the event that drops it. That event is the save of another
/// version, and does not come after the first request for this one.
std::vector<PlanLinearProgram::Copy> PlanLinearProgram::copies_out() const {
  const auto events = of_.step_.events();
  std::vector<std::size_t> last_pack(events.size() + 1, 0);  // before the event
  for (std::size_t e = 0; e < events.size(); ++e)
    last_pack[e + 1] = events[e].kind == EventKind::kPack ? e : last_pack[e];
  std::vector<Copy> copies;
  for (std::size_t v = 0; v < moved_.size(); ++v) {
    if (moved_[v] == kNoEvent) continue;
    const MovableVersion& version = of_.versions_[v];
    const std::size_t asked = std::min({version.last_first_unpack, version.last_release, events.size()});
    const Nanoseconds duration = of_.link_.d2h.duration(version.bytes);
    copies.push_back({v, of_.point_at_or_before(2 * version.first_pack),
                      of_.point_at_or_after(2 * last_pack[asked] + 1),
                      static_cast<double>(duration) / time_unit_});
  }
  return copies;
}

/// Reloads begin at unpacks. They are done before the unpack of the version's last tensor is done.
std::vector<PlanLinearProgram::Copy> PlanLinearProgram::copies_in() const {
  const auto events = of_.step_.events();
  std::vector<std::size_t> next_unpack(events.size() + 1, events.size());  // at the event or after it
  for (std::size_t e = events.size(); e-- > 0;)
    next_unpack[e] = events[e].kind == EventKind::kUnpack ? e : next_unpack[e + 1];
  std::vector<Copy> copies;
  for (std::size_t v = 0; v < moved_.size(); ++v) {
    const MovableVersion& version = of_.versions_[v];
    if (moved_[v] == kNoEvent || version.last_first_unpack == kNoEvent) continue;
    const Nanoseconds duration = of_.link_.h2d.duration(version.bytes);
    copies.push_back({v, of_.point_at_or_before(2 * next_unpack[version.first_pack]),
                      of_.point_at_or_after(2 * version.last_first_unpack + 1),
                      static_cast<double>(duration) / time_unit_});
  }
  return copies;
}

/// The copies run in the order of their releases. No copy is done before its release plus its own duration,
/// nor before the end of the previous copy plus its own duration. All are done by the deadline.
void PlanLinearProgram::add_copies_out(const std::vector<Copy>& copies, std::size_t deadline) {
  std::vector<LinearProgram::Terms> begun(at_.size());
  for (const Copy& copy : copies)
    if (copy.deadline <= deadline) begun[copy.release].emplace_back(moved_[copy.version], -copy.duration);
  std::size_t last = kNoEvent;
  for (std::size_t k = 0; k < begun.size(); ++k) {
    if (begun[k].empty()) continue;
    const std::size_t done = program_.add_column(0, 0, program_.upper(at_.back()));
    LinearProgram::Terms row = begun[k];
    row.emplace_back(done, 1);
    row.emplace_back(at_[k], -1);
    program_.add_row(row, 0);
    if (last != kNoEvent) {
      row.back() = {last, -1};
      program_.add_row(row, 0);
    }
    last = done;
  }
  if (last != kNoEvent) program_.add_row({{at_[deadline], 1}, {last, -1}}, 0);
}

/// From the release on, the copies run one after the other, in the order of their deadlines.
void PlanLinearProgram::add_copies_in(const std::vector<Copy>& copies, std::size_t release) {
  std::vector<LinearProgram::Terms> due(at_.size());
  for (const Copy& copy : copies)
    if (copy.release >= release) due[copy.deadline].emplace_back(moved_[copy.version], -copy.duration);
  std::size_t last = at_[release];
  for (std::size_t k = 0; k < due.size(); ++k) {
    if (due[k].empty()) continue;
    const std::size_t done = program_.add_column(0, 0, program_.upper(at_.back()));
    LinearProgram::Terms row = due[k];
    row.emplace_back(done, 1);
    row.emplace_back(last, -1);
    program_.add_row(row, 0);
    program_.add_row({{at_[k], 1}, {done, -1}}, 0);
    last = done;
  }
}

/// Each request for a copy takes the host's time, in addition to its other work.
void PlanLinearProgram::add_launch_row() {
  if (of_.link_.launch_ns == 0) return;
  LinearProgram::Terms row = {{at_.back(), 1}};
  for (std::size_t v = 0; v < moved_.size(); ++v) {
    if (moved_[v] == kNoEvent) continue;
    const double copies = of_.versions_[v].last_first_unpack == kNoEvent ? 1 : 2;
    row.emplace_back(moved_[v], -copies * static_cast<double>(of_.link_.launch_ns) / time_unit_);
  }
  program_.add_row(row, static_cast<double>(of_.host_path_) / time_unit_);
}

/// Right before the first unpack, host memory holds the copies of all moved versions whose tensors are all
/// saved by then, and none released.
void PlanLinearProgram::add_host_row() {
  if (!of_.host_memory_) return;
  const auto events = of_.step_.events();
  std::size_t first_unpack = 0;
  while (first_unpack < events.size() && events[first_unpack].kind != EventKind::kUnpack) ++first_unpack;
  std::vector<std::size_t> last_pack(of_.versions_.size(), 0), first_release(of_.versions_.size(), kNoEvent);
  std::vector<std::size_t> version_of(of_.step_.requests().size(), kNoEvent);
  for (std::size_t v = 0; v < of_.versions_.size(); ++v)
    for (const SavedId tensor : of_.versions_[v].tensors) version_of[tensor] = v;
  for (std::size_t e = 0; e < events.size(); ++e) {
    const bool is_pack = events[e].kind == EventKind::kPack;
    if (!is_pack && events[e].kind != EventKind::kRelease) continue;
    const std::size_t v = version_of[events[e].id];
    if (v == kNoEvent) continue;
    if (is_pack)
      last_pack[v] = e;
    else
      first_release[v] = std::min(first_release[v], e);
  }
  LinearProgram::Terms row;
  for (std::size_t v = 0; v < moved_.size(); ++v)
    if (moved_[v] != kNoEvent && last_pack[v] < first_unpack && first_release[v] > first_unpack)
      row.emplace_back(moved_[v], -static_cast<double>(of_.versions_[v].bytes) / byte_unit_);
  if (!row.empty()) program_.add_row(row, -static_cast<double>(*of_.host_memory_) / byte_unit_);
}

PlanBound PlanLinearProgram::solve() {
  PlanBound bound;
  for (int round = 0; round < kMostRounds; ++round) {
    const bool is_solved = program_.solve();
    const double unit = question_.time ? byte_unit_ : time_unit_;
    bound.value = std::max(bound.value, std::min(question_.known, program_.safe_bound() * unit));
    if (!is_solved) break;
    const std::size_t added = add_broken_memory_rows();
    if (added + add_broken_copy_rows() == 0) break;
  }
  bound.rows = program_.rows();
  bound.moved.assign(moved_.size(), 0);
  for (std::size_t v = 0; v < moved_.size(); ++v)
    if (moved_[v] != kNoEvent) bound.moved[v] = program_.values()[moved_[v]];
  return bound;
}

bool PlanLinearProgram::is_broken(double amount) const {
  return amount > kTolerance * kScale / 10;
}

/// Returns the share of the version that a solution moves or recomputes.
double PlanLinearProgram::share_gone(std::size_t version) const {
  const std::vector<double>& values = program_.values();
  return values[moved_[version]] + (recomputed_[version] == kNoEvent ? 0 : values[recomputed_[version]]);
}

/// Returns the excess of a solution's memory over its peak after each event, in byte units.
std::vector<double> PlanLinearProgram::excess_after_events() const {
  const std::size_t events = of_.step_.events().size();
  std::vector<double> change(events + 1, 0);
  for (const LeastMemory::Gap& gap : of_.least_.gaps) {
    const double stays = 1 - share_gone(gap.version);
    const double bytes = stays * static_cast<double>(of_.versions_[gap.version].bytes) / byte_unit_;
    change[gap.begin] += bytes;
    change[gap.end] -= bytes;
  }
  std::vector<double> excess;
  double waiting = 0;
  for (std::size_t e = 0; e < events; ++e) {
    waiting += change[e];
    excess.push_back(static_cast<double>(of_.least_.after_event[e]) / byte_unit_ + waiting -
                     program_.values()[peak_]);
  }
  return excess;
}

std::size_t PlanLinearProgram::add_broken_memory_rows() {
  const std::vector<double> excess = excess_after_events();
  std::size_t added = 0;
  for (std::size_t part = 0; part < kPartsOfStep; ++part) {
    const auto begin = excess.begin() + static_cast<std::ptrdiff_t>(part * excess.size() / kPartsOfStep);
    const auto end = excess.begin() + static_cast<std::ptrdiff_t>((part + 1) * excess.size() / kPartsOfStep);
    const auto worst = std::max_element(begin, end);
    if (worst == end || !is_broken(*worst)) continue;
    const auto event = static_cast<std::size_t>(worst - excess.begin());
    if (std::exchange(has_memory_row_[event], 1) != 0) continue;
    add_memory_row(event);
    tight_events_.push_back(event);
    ++added;
  }
  return added;
}

/// Returns the versions that have the event in a gap, in the order of their first save.
std::vector<std::size_t> PlanLinearProgram::waiting_after(std::size_t event) const {
  std::vector<std::size_t> waiting;
  for (const LeastMemory::Gap& gap : of_.least_.gaps)
    if (gap.begin <= event && event < gap.end) waiting.push_back(gap.version);
  std::sort(waiting.begin(), waiting.end());
  return waiting;
}

double PlanLinearProgram::bytes_of(std::size_t version) const {
  return static_cast<double>(of_.versions_[version].bytes) / byte_unit_;
}

void PlanLinearProgram::add_memory_row(std::size_t event) {
  LinearProgram::Terms row = {{peak_, 1}};
  double held = static_cast<double>(of_.least_.after_event[event]) / byte_unit_;
  for (const std::size_t v : waiting_after(event)) {
    row.emplace_back(moved_[v], bytes_of(v));
    if (recomputed_[v] != kNoEvent) row.emplace_back(recomputed_[v], bytes_of(v));
    held += bytes_of(v);
  }
  program_.add_row(std::move(row), held);
}

std::size_t PlanLinearProgram::add_broken_copy_rows() {
  std::size_t added = 0;
  for (const std::size_t event : tight_events_) {
    added += add_copy_row(event, true) ? 1 : 0;
    added += add_copy_row(event, false) ? 1 : 0;
  }
  return added;
}

PlanLinearProgram::TightMoment PlanLinearProgram::tight_moment(std::size_t event, bool is_out) const {
  TightMoment moment{waiting_after(event), 0, 0, 0, is_out};
  if (!is_out) {
    const auto asked = [&](std::size_t v) { return of_.versions_[v].last_first_unpack; };
    std::sort(moment.waiting.begin(), moment.waiting.end(),
              [&](std::size_t a, std::size_t b) { return asked(a) > asked(b); });
  }
  const LinkDirection& direction = is_out ? of_.link_.d2h : of_.link_.h2d;
  moment.here = is_out ? of_.point_at_or_after(2 * event + 1) : of_.point_at_or_before(2 * event + 1);
  moment.per_byte = std::numeric_limits<double>::max();
  moment.held = static_cast<double>(of_.least_.after_event[event]) / byte_unit_;
  for (const std::size_t v : moment.waiting) {
    const auto duration = static_cast<double>(direction.duration(of_.versions_[v].bytes)) / time_unit_;
    moment.per_byte = std::min(moment.per_byte, duration / bytes_of(v));
    moment.held += bytes_of(v);
  }
  return moment;
}

/// Visits the points from the beginning of the step towards the moment; for copies in, from the end.
PlanLinearProgram::Violation PlanLinearProgram::worst_interval(const TightMoment& moment) const {
  const std::vector<double>& values = program_.values();
  const double now = values[at_[moment.here]];
  double outside = 0;  // bytes that are gone and need no copy in the interval
  for (const std::size_t v : moment.waiting)
    if (recomputed_[v] != kNoEvent) outside += bytes_of(v) * values[recomputed_[v]];
  std::size_t count = 0;
  Violation worst;
  const std::size_t steps = moment.is_out ? moment.here + 1 : at_.size() - moment.here;
  for (std::size_t i = 0; i < steps; ++i) {
    const std::size_t k = moment.is_out ? i : at_.size() - 1 - i;
    for (; count < moment.waiting.size() && is_outside(moment.waiting[count], of_.points_[k], moment.is_out);
         ++count)
      outside += bytes_of(moment.waiting[count]) * values[moved_[moment.waiting[count]]];
    const double span = moment.is_out ? now - values[at_[k]] : values[at_[k]] - now;
    const double broken = moment.per_byte * (moment.held - values[peak_] - outside) - span;
    if (broken > worst.amount) worst = {broken, k, count};
  }
  return worst;
}

/// Bytes that are not on the device after `event` are copied out before it and copied in after it. Between an
/// earlier point and the event, all of them are copied out except those saved before that point. Between the
/// event and a later point, all of them are copied in except those first unpacked after that point.
bool PlanLinearProgram::add_copy_row(std::size_t event, bool is_out) {
  const TightMoment moment = tight_moment(event, is_out);
  if (moment.waiting.empty()) return false;
  const Violation worst = worst_interval(moment);
  if (!is_broken(worst.amount)) return false;
  LinearProgram::Terms row = {{peak_, moment.per_byte}};
  if (worst.place != moment.here) {
    row.emplace_back(at_[moment.here], is_out ? 1 : -1);
    row.emplace_back(at_[worst.place], is_out ? -1 : 1);
  }
  for (std::size_t i = 0; i < worst.outside; ++i)
    row.emplace_back(moved_[moment.waiting[i]], moment.per_byte * bytes_of(moment.waiting[i]));
  for (const std::size_t v : moment.waiting)
    if (recomputed_[v] != kNoEvent) row.emplace_back(recomputed_[v], moment.per_byte * bytes_of(v));
  program_.add_row(std::move(row), moment.per_byte * moment.held);
  return true;
}

bool PlanLinearProgram::is_outside(std::size_t version, std::size_t instant, bool is_out) const {
  const MovableVersion& of = of_.versions_[version];
  if (is_out) return 2 * of.first_pack < instant;
  return of.last_first_unpack == kNoEvent || 2 * of.last_first_unpack + 1 > instant;
}

}  // namespace offprof
