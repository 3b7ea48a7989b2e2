#include "simulator/steps/time_doubt.h"

#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <functional>
#include <utility>

#include "simulator/replay/replay.h"
#include "traces/base/whole_number.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

/// A range wider than this share of the step means that the machine was busy during the measurement.
constexpr double kWidestRange = 0.25;
/// A figure that contributes at least this share of the range is named in the warnings.
constexpr double kNamedShare = 1.0 / 3;
/// Nanoseconds; no step takes longer, and clocks can represent it.
constexpr double kMostMoved = 1e18;

using Quartile = Nanoseconds MeasuredQuartiles::*;

/// One calibrated figure.
struct Figure {
  std::string what;
  MeasuredQuartiles measured;  ///< its values as shown to the user
  /// Replaces its values by one of its quartiles.
  std::function<void(Calibration&, Quartile)> pin;
};

void pin(MeasuredQuartiles& measured, Quartile quartile) {
  const Nanoseconds value = measured.*quartile;
  measured = {value, value, value};
}

Figure figure_of(const char* what, const Calibration& calibration, MeasuredQuartiles Calibration::*member) {
  return {what, calibration.*member,
          [member](Calibration& varied, Quartile quartile) { pin(varied.*member, quartile); }};
}

using CopyTimings = std::vector<CopyTiming> Calibration::*;

/// Returns the time of the smallest copies, which is the latency of a link.
Figure small_copies_of(const char* what, const Calibration& calibration, CopyTimings member) {
  const std::vector<CopyTiming>& copies = calibration.*member;
  return {
      what, copies.empty() ? MeasuredQuartiles{} : copies.front().duration,
      [member](Calibration& varied, Quartile quartile) { pin((varied.*member).front().duration, quartile); }};
}

/// Returns the time of the largest copies, which together with the latency is the bandwidth, unless that was
/// measured in a step.
Figure large_copies_of(const char* what, const Calibration& calibration, CopyTimings member) {
  const std::vector<CopyTiming>& copies = calibration.*member;
  return {
      what, copies.size() < 2 ? MeasuredQuartiles{} : copies.back().duration,
      [member](Calibration& varied, Quartile quartile) { pin((varied.*member).back().duration, quartile); }};
}

Figure standstills_of(const Calibration& calibration) {
  const auto& standstills = calibration.standstills;
  return {"the cost of a stall", standstills.empty() ? MeasuredQuartiles{} : standstills.back().lost,
          [](Calibration& varied, Quartile quartile) {
            for (StandstillTiming& standstill : varied.standstills) pin(standstill.lost, quartile);
          }};
}

/// Returns the figures that a replay uses.
std::vector<Figure> figures_of_replay(const Calibration& calibration) {
  return {small_copies_of("small D2H copies", calibration, &Calibration::d2h),
          small_copies_of("small H2D copies", calibration, &Calibration::h2d),
          large_copies_of("large D2H copies", calibration, &Calibration::d2h),
          large_copies_of("large H2D copies", calibration, &Calibration::h2d),
          figure_of("D2H copies of a step, per MiB", calibration, &Calibration::copy_out_per_mib),
          figure_of("H2D copies of a step, per MiB", calibration, &Calibration::copy_in_per_mib),
          figure_of("the start of a copy", calibration, &Calibration::start),
          figure_of("issuing a copy", calibration, &Calibration::command),
          figure_of("waiting for a finished copy", calibration, &Calibration::event),
          figure_of("a saved-tensor hook", calibration, &Calibration::hook),
          standstills_of(calibration),
          figure_of("the slowdown by copies, per MiB", calibration, &Calibration::slowdown_per_mib),
          figure_of("the cost of a reload, per MiB", calibration, &Calibration::reload_per_mib)};
}

/// Changes of the step time caused by a figure, down and up; neither is negative.
struct Move {
  std::string what;
  MeasuredQuartiles measured;
  double down = 0, up = 0;
  double width() const { return down + up; }
};

class Doubter {
 public:
  Doubter(const Calibration& calibration, const StepProgram& program, Step step, const Policy& policy,
          const Link& link)
      : calibration_(calibration),
        program_(program),
        step_(std::move(step)),
        policy_(policy),
        link_(link),
        predicted_(step_time(calibration)) {}

  TimeDoubt doubt() {
    for (const Figure& figure : figures_of_replay(calibration_)) add_replayed(figure);
    add_step();
    add_operators();
    TimeDoubt doubt;
    double down = 0, up = 0;
    for (const Move& move : moves_) {
      down = std::hypot(down, move.down);
      up = std::hypot(up, move.up);
    }
    doubt.step = {predicted_ - to_whole(std::min(down, kMostMoved)),
                  predicted_ + to_whole(std::min(up, kMostMoved))};
    doubt.means_little = down + up > kWidestRange * static_cast<double>(predicted_);
    if (doubt.means_little) name_widest(doubt.warnings, down + up);
    return doubt;
  }

 private:
  Nanoseconds step_time(const Calibration& calibration) {
    step_.set_costs(costs_of(calibration));
    return *replay(step_, policy_, link_with(calibration)).metrics.step_time_ns;
  }

  /// Returns the link with the figures of `calibration` in those parts in which it is the calibrated link.
  Link link_with(const Calibration& calibration) const {
    const Link measured = link_of(calibration_), varied = link_of(calibration);
    Link link = link_;
    vary(link.d2h, measured.d2h, varied.d2h);
    vary(link.h2d, measured.h2d, varied.h2d);
    if (link.launch_ns == measured.launch_ns) link.launch_ns = varied.launch_ns;
    return link;
  }

  static void vary(LinkDirection& link, const LinkDirection& measured, const LinkDirection& varied) {
    if (link.start_ns == measured.start_ns) link.start_ns = varied.start_ns;
    if (link.bytes_per_second != measured.bytes_per_second || link.latency_ns != measured.latency_ns) return;
    link.bytes_per_second = varied.bytes_per_second;
    link.latency_ns = varied.latency_ns;
  }

  void add_replayed(const Figure& figure) {
    if (figure.measured.low_ns == figure.measured.high_ns) return;
    Move move{figure.what, figure.measured};
    for (const Quartile quartile : {&MeasuredQuartiles::low_ns, &MeasuredQuartiles::high_ns}) {
      Calibration varied = calibration_;
      figure.pin(varied, quartile);
      const auto moved = static_cast<double>(step_time(varied) - predicted_);
      move.down = std::max(move.down, -moved);
      move.up = std::max(move.up, moved);
    }
    moves_.push_back(std::move(move));
  }

  /// Compute times are scaled to the step's own time, so its spread scales them too.
  void add_step() {
    const MeasuredQuartiles& step = calibration_.step;
    if (step.median_ns <= 0) return;
    const double scale = static_cast<double>(step_.compute_ns()) / static_cast<double>(step.median_ns);
    moves_.push_back({"a step with nothing offloaded", step,
                      scale * static_cast<double>(step.median_ns - step.low_ns),
                      scale * static_cast<double>(step.high_ns - step.median_ns)});
  }

  /// The step's spread covers the case that all operators are slow at once. Independent spreads even out.
  void add_operators() {
    double squares = 0;
    Nanoseconds widest = 0;
    for (const Nanoseconds spread : program_.compute_spread_ns) {
      squares += static_cast<double>(spread) * static_cast<double>(spread);
      widest = std::max(widest, spread);
    }
    const double half = std::sqrt(squares) / 2;
    moves_.push_back({"the times of the operators", {widest, 0, widest}, half, half});
  }

  void name_widest(std::vector<std::string>& warnings, double width) {
    std::ranges::stable_sort(moves_, std::greater<>(), &Move::width);
    for (const Move& move : moves_) {
      if (!warnings.empty() && move.width() < kNamedShare * width) break;
      warnings.push_back(fmt::format(
          "predicted times are unreliable: {} took {} to {} when the trace was recorded (middle half), "
          "which changes the predicted step time by {:.0f}%; record it again on an idle machine",
          move.what, format_duration(move.measured.low_ns), format_duration(move.measured.high_ns),
          100 * move.width() / static_cast<double>(std::max<Nanoseconds>(predicted_, 1))));
    }
  }

  const Calibration& calibration_;
  const StepProgram& program_;
  Step step_;
  const Policy& policy_;
  const Link& link_;
  Nanoseconds predicted_;
  std::vector<Move> moves_;
};

}  // namespace

TimeDoubt doubt_times(const Trace& trace, const TraceSteps& steps, const Policy& policy, const Link& link) {
  const Environment& environment = trace.environment;
  if (environment.times_are_modelled) {
    TimeDoubt doubt;
    if (const auto time = modelled_time(trace, steps, policy, link)) doubt.step = range_of(*time);
    return doubt;
  }
  if (!environment.calibration)
    return {{},
            false,
            {"the trace has no calibration (an earlier version recorded it), so predicted times omit the "
             "overhead of offloading other than copies; record it again"}};
  const StepProgram& program = steps.program(policy);
  TimeDoubt doubt = Doubter(*environment.calibration, program, steps.step(policy), policy, link).doubt();
  if (program.compute_spread_ns.empty())
    doubt.warnings.emplace_back(
        "the times of the operators come from one recorded step, so their spread is unknown");
  return doubt;
}

}  // namespace offprof
