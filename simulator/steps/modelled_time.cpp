#include "simulator/steps/modelled_time.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "simulator/replay/replay.h"
#include "simulator/steps/time_factors.h"
#include "traces/base/whole_number.h"

namespace offprof {
namespace {

constexpr const char* kHost = "host";
constexpr const char* kCopies = "copies";
constexpr const char* kCollectives = "collectives";

/// Factors of real over modelled times.
struct Pace {
  double stream = 1, host = 1, copies = 1;
  double collectives = 1;  ///< on streams of their own
};

Nanoseconds scaled(Nanoseconds time, double factor) {
  return to_whole(static_cast<double>(time) * factor);
}

/// Scales a time of which `of_stream` is the stream's, and the rest the host's.
Nanoseconds scaled(Nanoseconds time, Nanoseconds of_stream, const Pace& pace) {
  const Nanoseconds stream = std::clamp<Nanoseconds>(of_stream, 0, time);
  return scaled(stream, pace.stream) + scaled(time - stream, pace.host);
}

/// The longest path through a stretch goes through all of the host's work or all of the stream's, whichever
/// is more, and some of the other's. Waits of the host for the stream are times of the stream.
Work scaled(const Work& work, const Pace& pace) {
  const bool host_is_longer = work.host_ns >= work.stream_ns;
  Work result;
  result.host_ns = scaled(work.host_ns, work.waits() ? work.busy_ns : 0, pace);
  result.stream_ns = scaled(work.stream_ns, work.waits() ? work.busy_ns : work.stream_ns, pace);
  result.path_ns = scaled(work.path_ns, host_is_longer ? work.path_ns - work.host_ns : work.stream_ns, pace);
  if (work.waits()) result.wait_ns = scaled(work.wait_ns, work.stream_ns, pace);
  result.busy_ns = scaled(work.busy_ns, pace.stream);
  return result;
}

void scale(TransformUse& use, const Pace& pace) {
  use.compute_ns = scaled(use.compute_ns, pace.stream);
  use.work = scaled(use.work, pace);
}

StepProgram scaled(StepProgram program, const Pace& pace) {
  for (Work& work : program.work) work = scaled(work, pace);
  for (StreamCommand& command : program.stream_commands) {
    const bool is_collective = command.kind == StreamCommand::Kind::kCollective;
    command.duration_ns = scaled(command.duration_ns, is_collective ? pace.collectives : pace.stream);
    command.before = scaled(command.before, pace);
  }
  for (Staging& staging : program.staging) {
    staging.host_ns = scaled(staging.host_ns, pace.host);
    staging.stream_ns = scaled(staging.stream_ns, pace.stream);
  }
  if (program.recomputations)
    for (Recomputation& recomputation : *program.recomputations) scale(recomputation.use, pace);
  return program;
}

LinkDirection scaled(LinkDirection direction, double factor) {
  direction.bytes_per_second /= factor;
  direction.latency_ns = scaled(direction.latency_ns, factor);
  return direction;
}

/// A family's part of the stream's time, and the range of its kernels.
struct FamilyShare {
  std::string family;
  double share = 0;
  TimeFactors factors;
};

std::vector<FamilyShare> shares_of(const StepProgram& program) {
  Nanoseconds all = 0;
  for (const FamilyTime& one : program.families) all += one.busy_ns;
  std::vector<FamilyShare> shares;
  for (const auto& [family, busy_ns] : program.families)
    if (all > 0)
      shares.push_back(
          {family, static_cast<double>(busy_ns) / static_cast<double>(all), kernel_factors(family)});
  const auto is_collective = [](const StreamCommand& command) {
    return command.kind == StreamCommand::Kind::kCollective;
  };
  if (std::ranges::any_of(program.stream_commands, is_collective) &&
      std::ranges::find(shares, kCollectives, &FamilyShare::family) == shares.end())
    shares.push_back({kCollectives, 0, kernel_factors(kCollectives)});
  return shares;
}

Pace pace_at(const FamilyShare& one, double factor) {
  Pace pace{.stream = 1 + one.share * (factor - 1)};
  if (one.family == kCollectives) pace.collectives = factor;
  return pace;
}

/// Predicts one step at other paces.
class PacedStep {
 public:
  PacedStep(const Trace& trace, const TraceSteps& steps, const Policy& policy, const Link& link)
      : trace_(trace), steps_(steps), policy_(policy), link_(link) {}

  ModelledTime run() const {
    ModelledTime time{*replay(steps_.step(policy_), policy_, link_).metrics.step_time_ns, {}};
    const auto add = [&](const std::string& source, const Pace& low, const Pace& high) {
      time.moves.push_back({source, step_ns(low) - time.step_ns, step_ns(high) - time.step_ns});
    };
    for (const FamilyShare& one : shares_of(steps_.program(policy_)))
      add(one.family, pace_at(one, one.factors.low), pace_at(one, one.factors.high));
    const bool is_of_python = trace_.settings.loss == kOfScript;
    const TimeFactors host = is_of_python ? python_host_factors() : host_factors();
    add(kHost, {.host = host.low}, {.host = host.high});
    add(kCopies, {.copies = copy_factors().low}, {.copies = copy_factors().high});
    return time;
  }

 private:
  /// A link that the user gave is certain.
  bool is_given(const LinkDirection& direction, const LinkDirection& of_trace) const {
    return trace_.settings.link_cap.has_value() || direction != of_trace;
  }

  Link link_at(const Pace& pace) const {
    const Link& of_trace = trace_.environment.link;
    Link link = link_;
    if (!is_given(link.d2h, of_trace.d2h)) link.d2h = scaled(link.d2h, pace.copies);
    if (!is_given(link.h2d, of_trace.h2d)) link.h2d = scaled(link.h2d, pace.copies);
    link.bidirectional_bytes_per_second = link_.bidirectional_of(link.d2h, link.h2d);
    link.launch_ns = scaled(link.launch_ns, pace.host);
    return link;
  }

  Nanoseconds step_ns(const Pace& pace) const {
    const StepProgram program = scaled(steps_.program(policy_), pace);
    std::vector<TransformProfile> transforms(steps_.transforms().begin(), steps_.transforms().end());
    for (TransformProfile& transform : transforms)
      for (TransformCost& cost : transform.costs) {
        scale(cost.encode, pace);
        scale(cost.decode, pace);
      }
    const Step& own = steps_.step(policy_);
    Step step(program, own.costs(), transforms);
    step.set_parameters_are_on_disk(own.parameters_are_on_disk());
    return *replay(step, policy_, link_at(pace)).metrics.step_time_ns;
  }

  const Trace& trace_;
  const TraceSteps& steps_;
  const Policy& policy_;
  const Link& link_;
};

/// Adds the changes of independent sources as squares, below `center` and above it.
TimeRange around(Nanoseconds center, const std::vector<TimeMove>& moves) {
  double below = 0, above = 0;
  for (const TimeMove& move : moves) {
    below =
        std::hypot(below, static_cast<double>(-std::min({move.at_low_ns, move.at_high_ns, Nanoseconds{0}})));
    above =
        std::hypot(above, static_cast<double>(std::max({move.at_low_ns, move.at_high_ns, Nanoseconds{0}})));
  }
  return {center - to_whole(below), center + to_whole(above)};
}

bool has_families(const StepProgram& program) {
  return !program.work.empty() && !program.families.empty();
}

}  // namespace

std::optional<ModelledTime> modelled_time(const Trace& trace, const TraceSteps& steps, const Policy& policy,
                                          const Link& link) {
  if (!trace.environment.times_are_modelled || !has_families(steps.program(policy))) return std::nullopt;
  return PacedStep(trace, steps, policy, link).run();
}

TimeRange range_of(const ModelledTime& time) {
  return around(time.step_ns, time.moves);
}

TimeRange difference_range(const ModelledTime& a, const ModelledTime& b) {
  std::vector<TimeMove> moves = b.moves;
  for (const TimeMove& move : a.moves) {
    auto found = std::ranges::find(moves, move.source, &TimeMove::source);
    if (found == moves.end()) found = moves.insert(found, {move.source});
    found->at_low_ns -= move.at_low_ns;
    found->at_high_ns -= move.at_high_ns;
  }
  return around(b.step_ns - a.step_ns, moves);
}

bool are_alike(const ModelledTime& a, const ModelledTime& b) {
  const TimeRange range = difference_range(a, b);
  return range.low_ns <= 0 && range.high_ns >= 0;
}

}  // namespace offprof
