#include "profiler/recording/program_times.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/replay/replay.h"

namespace offprof {
namespace {

/// A phase shorter than this share of the step does not show how recording changes times.
constexpr double kLeastShare = 0.05;
/// Number of corrections: on a separate device the time of a step is not proportional to its work.
constexpr int kFits = 8;

bool is_hook(EventKind kind) {
  return kind == EventKind::kPack || kind == EventKind::kUnpack || kind == EventKind::kRelease;
}

bool is_marked(EventKind kind) {
  return kind == EventKind::kPhase || kind == EventKind::kPack || kind == EventKind::kUnpack;
}

/// Returns the indices of the events at which a marked step has marks.
std::vector<std::size_t> marked_events(const StepProgram& program) {
  std::vector<std::size_t> marked;
  for (std::size_t i = 0; i < program.events.size(); ++i)
    if (is_marked(program.events[i].kind)) marked.push_back(i);
  return marked;
}

bool are_of(const StepProgram& program, const std::vector<std::size_t>& events, const StepMarks& marks) {
  return std::ranges::equal(events, marks, [&](std::size_t index, const StepMark& mark) {
    const Event& event = program.events[index];
    return event.kind == mark.kind && (event.kind == EventKind::kPhase || event.id == mark.tensor);
  });
}

Nanoseconds hooks_in(const StepProgram& program, std::size_t begin, std::size_t end) {
  const auto first = program.events.begin();
  return std::count_if(first + static_cast<std::ptrdiff_t>(begin), first + static_cast<std::ptrdiff_t>(end),
                       [](const Event& event) { return is_hook(event.kind); });
}

Nanoseconds compute_in(const StepProgram& program, std::size_t begin, std::size_t end) {
  Nanoseconds sum = 0;
  for (std::size_t i = begin; i < end; ++i) sum += program.events[i].compute_ns;
  return sum;
}

/// Returns the time between mark `k` and the one before, over all passes.
MeasuredQuartiles between(const std::vector<StepMarks>& passes, std::size_t k, Nanoseconds StepMark::*clock) {
  std::vector<Nanoseconds> times;
  for (const StepMarks& marks : passes)
    times.push_back(std::max<Nanoseconds>(marks[k].*clock - marks[k - 1].*clock, 0));
  return summarize_measured(std::move(times));
}

/// Measured times of the host and the stream in a stretch.
struct Stretch {
  Nanoseconds host_ns = 0, stream_ns = 0;

  /// Returns the work up to that share of the stretch.
  Work work_until(double share) const {
    const auto part = [&](Nanoseconds time) { return std::llround(share * static_cast<double>(time)); };
    const Nanoseconds host = part(host_ns), stream = part(stream_ns);
    return {host, stream, part(std::max(host_ns, stream_ns)), Work::kNoWait, stream};
  }
};

Work difference(const Work& a, const Work& b) {
  return {a.host_ns - b.host_ns, a.stream_ns - b.stream_ns, a.path_ns - b.path_ns, Work::kNoWait,
          a.busy_ns - b.busy_ns};
}

/// Distributes a stretch over its events in the recorded proportions. If nothing was recorded, the last event
/// gets all.
void set_stretch(StepProgram& program, std::size_t begin, std::size_t end, const Stretch& stretch) {
  const auto recorded = static_cast<double>(compute_in(program, begin, end));
  double so_far = 0;
  Work given{0, 0, 0, Work::kNoWait, 0};
  for (std::size_t i = begin; i < end; ++i) {
    Event& event = program.events[i];
    so_far += static_cast<double>(event.compute_ns);
    const Work until = stretch.work_until(i + 1 == end ? 1 : recorded > 0 ? so_far / recorded : 0);
    const Work own = difference(until, given);
    given = until;
    event.compute_ns = own.stream_ns;
    if (!program.work.empty()) program.work[i] = own;
  }
}

/// Returns the step time under the policy without stalls.
Nanoseconds unexposed_time(const StepProgram& program, const Calibration& calibration, const Policy& policy) {
  const Metrics metrics = replay(Step(program, costs_of(calibration)), policy, link_of(calibration)).metrics;
  return *metrics.step_time_ns - *metrics.exposed_ns;
}

std::optional<double> fit_beside_host(StepProgram& program, const Calibration& calibration,
                                      const Policy& policy, Nanoseconds compute_ns) {
  double product = 1;
  for (int i = 0; i < kFits; ++i) {
    const Nanoseconds time = unexposed_time(program, calibration, policy);
    if (time <= 0 || compute_ns <= 0) return std::nullopt;
    const double factor = static_cast<double>(compute_ns) / static_cast<double>(time);
    scale_compute(program, factor);
    product *= factor;
  }
  return product;
}

}  // namespace

void assume_host_ahead(StepProgram& program) {
  program.work.clear();
  for (const Event& event : program.events)
    program.work.push_back({0, event.compute_ns, event.compute_ns, Work::kNoWait, event.compute_ns});
}

bool set_marked_times(StepProgram& program, const std::vector<StepMarks>& passes, Nanoseconds hook_ns,
                      ComputesOn computes) {
  const std::vector<std::size_t> events = marked_events(program);
  const auto is_of_program = [&](const StepMarks& marks) { return are_of(program, events, marks); };
  if (events.empty() || passes.empty() || !std::ranges::all_of(passes, is_of_program)) return false;
  if (computes == ComputesOn::kDevice) assume_host_ahead(program);
  for (std::size_t k = 1; k < events.size(); ++k) {
    const std::size_t begin = events[k - 1] + 1, end = events[k] + 1;
    const Nanoseconds hooks = hook_ns * hooks_in(program, begin, end);
    const MeasuredQuartiles stream = between(passes, k, &StepMark::stream_ns);
    const Nanoseconds host = between(passes, k, &StepMark::host_ns).median_ns;
    Stretch stretch{std::max<Nanoseconds>(host - hooks, 0), stream.median_ns};
    if (computes == ComputesOn::kHost) stretch.stream_ns = std::max<Nanoseconds>(stream.median_ns - hooks, 0);
    set_stretch(program, begin, end, stretch);
    if (program.compute_spread_ns.empty()) continue;
    std::fill(program.compute_spread_ns.begin() + static_cast<std::ptrdiff_t>(begin),
              program.compute_spread_ns.begin() + static_cast<std::ptrdiff_t>(end), Nanoseconds{0});
    program.compute_spread_ns[end - 1] = stream.high_ns - stream.low_ns;
  }
  return true;
}

std::optional<double> fit_to_phases(StepProgram& program, const Calibration& calibration) {
  std::optional<double> furthest;
  std::vector<std::size_t> begins;
  for (std::size_t i = 0; i < program.events.size(); ++i)
    if (program.events[i].kind == EventKind::kPhase) begins.push_back(i);
  for (std::size_t p = 0; p < calibration.phases.size() && p < begins.size(); ++p) {
    const auto& [name, duration] = calibration.phases[p];
    if (program.names[program.events[begins[p]].id] != name) break;
    const std::size_t begin = begins[p] + 1;
    const std::size_t end = p + 1 < begins.size() ? begins[p + 1] + 1 : program.events.size();
    const Nanoseconds recorded = compute_in(program, begin, end);
    const Nanoseconds hooks =
        program.work.empty() ? calibration.hook.median_ns * hooks_in(program, begin, end) : 0;
    const Nanoseconds wanted = duration.median_ns - hooks;
    if (recorded <= 0 || wanted <= 0) continue;
    const double factor = static_cast<double>(wanted) / static_cast<double>(recorded);
    scale_compute(program, factor, begin, end);
    const bool makes_step = static_cast<double>(duration.median_ns) >=
                            kLeastShare * static_cast<double>(calibration.step.median_ns);
    if (makes_step && std::abs(std::log(factor)) >= std::abs(std::log(furthest.value_or(1))))
      furthest = factor;
  }
  return furthest;
}

void assume_work(StepProgram& program, const StepProgram& marked) {
  double host = 0, stream = 0;
  for (const Work& work : marked.work) {
    host += static_cast<double>(work.host_ns);
    stream += static_cast<double>(work.stream_ns);
  }
  assume_host_ahead(program);
  if (stream <= 0) return;
  for (Work& work : program.work) {
    work.host_ns = std::llround(host / stream * static_cast<double>(work.stream_ns));
    work.path_ns = std::max(work.host_ns, work.stream_ns);
  }
}

std::optional<double> fit_to_compute(StepProgram& program, const Calibration& calibration,
                                     const Policy& policy, Nanoseconds compute_ns) {
  if (!program.work.empty()) return fit_beside_host(program, calibration, policy, compute_ns);
  const Step step(program, costs_of(calibration));
  const Nanoseconds recorded = step.compute_ns();
  const Nanoseconds costs = *replay(step, policy, link_of(calibration)).metrics.compute_ns - recorded;
  const Nanoseconds wanted = compute_ns - costs;
  if (recorded <= 0 || wanted <= 0) return std::nullopt;
  const double factor = static_cast<double>(wanted) / static_cast<double>(recorded);
  scale_compute(program, factor);
  return factor;
}

MeasuredQuartiles reload_cost(const StepProgram& program, const Calibration& calibration,
                              const std::vector<Nanoseconds>& offloaded_extra_ns) {
  const Step step(program, costs_of(calibration));
  const Metrics replayed = replay(step, preset_policy("offload"), link_of(calibration)).metrics;
  const Nanoseconds unexposed = *replayed.step_time_ns - *replayed.exposed_ns;
  const double mib = static_cast<double>(*replayed.h2d_bytes) / kMiB;
  if (mib == 0 || offloaded_extra_ns.empty()) return {};
  std::vector<Nanoseconds> costs;
  const Nanoseconds explained = unexposed - calibration.step.median_ns;
  for (const Nanoseconds extra : offloaded_extra_ns) {
    const Nanoseconds more = std::max<Nanoseconds>(extra - explained, 0);
    costs.push_back(std::llround(static_cast<double>(more) / mib));
  }
  return summarize_measured(std::move(costs));
}

}  // namespace offprof
