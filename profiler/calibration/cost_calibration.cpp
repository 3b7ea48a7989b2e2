#include "profiler/calibration/cost_calibration.h"

#include <algorithm>
#include <array>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "profiler/calibration/call_costs.h"
#include "profiler/calibration/disturbances.h"

namespace offprof {
namespace {

/// The costs are a few percent of a step, and so is a machine's noise: three rounds are not enough.
constexpr int kMostRounds = 15, kLeastRounds = 5;
/// Rounds beyond the least are only for steps short enough for this budget.
constexpr Nanoseconds kRoundsBudget = 6'000'000'000;

/// Asks for steps of several kinds, some with an action at their hooks.
class StepTimer {
 public:
  StepTimer(Device& device, std::size_t hooks, std::vector<SavedId> backward_order)
      : device_(device),
        hooks_(std::max<std::size_t>(hooks, 1)),
        backward_order_(std::move(backward_order)) {}

  /// Returns the time of a step with nothing offloaded, without its stalls for parameters.
  StepScript<Nanoseconds> plain() {
    const StepOrder order{preset_policy("keep")};
    StepResult step = co_await order;
    phases_ = std::move(step.phases);
    if (step.exposed_ns > 0) phases_.clear();  // the phase of the stall is not known
    co_return step.step_time_ns - step.exposed_ns;
  }
  /// Returns the phases of the last plain step; empty: not known.
  const std::vector<std::pair<std::string_view, Nanoseconds>>& phases() const { return phases_; }
  /// Returns the time of a step with nothing offloaded and a listener.
  StepScript<Nanoseconds> with(HookAction& action) {
    const StepOrder order{.policy = preset_policy("keep"), .listener = &action};
    const StepResult step = co_await order;
    co_return step.step_time_ns;
  }
  StepScript<StepResult> offloaded() {
    const StepOrder order{preset_policy("offload"), backward_order_};
    co_return co_await order;
  }

  /// Returns the loss per pause of that length, compared with a step that only has a listener.
  StepScript<Nanoseconds> lost_by_standing(Nanoseconds stood, Nanoseconds listened) {
    const auto wanted = static_cast<std::size_t>(std::max(listened, kLeastStanding) / stood) + 1;
    const std::size_t every = std::max<std::size_t>(hooks_ / wanted, 1);
    std::size_t hook = 0;
    Nanoseconds standing = 0, count = 0;
    HookAction action([&] {
      if (hook++ % every != 0) return;
      const Nanoseconds begin = now_on(device_);
      stand_still(device_, stood);
      standing += now_on(device_) - begin;
      ++count;
    });
    const Nanoseconds time = co_await with(action);
    co_return count == 0 ? 0 : (time - standing - listened) / count;
  }

  std::size_t hooks() const { return hooks_; }

 private:
  Device& device_;
  std::size_t hooks_;
  std::vector<SavedId> backward_order_;
  std::vector<std::pair<std::string_view, Nanoseconds>> phases_;
};

/// Returns the additional time of a step per MiB that is copied concurrently, compared with a step that only
/// has a listener.
StepScript<Nanoseconds> lost_by_copies(Device& device, StepTimer& timer, Bytes bytes, Nanoseconds listened) {
  CopiesBeside copies(device, bytes);
  HookAction action([&] { copies.copy(); });
  const Nanoseconds time = co_await timer.with(action);
  const Nanoseconds lost = time - copies.asking_ns() - listened;
  device.take_copy_records();
  const double mib = static_cast<double>(copies.copied()) / kMiB;
  co_return mib == 0 ? 0 : static_cast<Nanoseconds>(static_cast<double>(lost) / mib);
}

int rounds_for(Nanoseconds plain) {
  constexpr Nanoseconds kStepsOfRound = 10;  // two of its eight steps take twice as long
  return static_cast<int>(std::clamp<Nanoseconds>(
      kRoundsBudget / (kStepsOfRound * std::max<Nanoseconds>(plain, 1)), kLeastRounds, kMostRounds));
}

/// Rounds of one step of each kind. A step that follows a step with another policy finds the memory and
/// caches of that step, so it only warms up.
class StepRounds {
 public:
  StepRounds(Device& device, StepTimer& timer, Calibration& calibration)
      : device_(device), timer_(timer), calibration_(calibration), on_host_(device.torch_device().is_cpu()) {}

  /// Returns by round the extra compute time with everything offloaded, compared with the plain step.
  StepScript<std::vector<Nanoseconds>> run() {
    co_await timer_.plain();
    const Nanoseconds first = co_await timer_.plain();
    bytes_each_ = bytes_beside(link_of(calibration_), first, timer_.hooks());
    for (int round = 0; round < rounds_for(first); ++round) co_await run_round();
    if (!core_to_core_.empty()) calibration_.core_to_core = summarize_measured(core_to_core_);
    calibration_.step = summarize_measured(plain_);
    note_phases();
    calibration_.slowdown_per_mib = summarize_losses(beside_);
    for (std::size_t i = 0; on_host_ && i < standing_.size(); ++i)
      calibration_.standstills.push_back({kStandstills[i], summarize_losses(standing_[i])});
    if (!out_.empty()) calibration_.copy_out_per_mib = summarize_measured(out_);
    if (!in_.empty()) calibration_.copy_in_per_mib = summarize_measured(in_);
    co_return std::move(offloaded_extra_);
  }

 private:
  StepScript<void> run_round() {
    HookAction nothing([] {});
    co_await timer_.plain();
    plain_.push_back(co_await timer_.plain());
    phases_.push_back(timer_.phases());
    const Nanoseconds listened = co_await timer_.with(nothing);
    beside_.push_back(co_await lost_by_copies(device_, timer_, bytes_each_, listened));
    for (std::size_t i = 0; on_host_ && i < standing_.size(); ++i)
      standing_[i].push_back(co_await timer_.lost_by_standing(kStandstills[i], listened));
    co_await timer_.offloaded();
    const StepResult offloaded = co_await timer_.offloaded();
    add_offloaded(offloaded);
    if (const auto apart = device_.core_to_core_ns()) core_to_core_.push_back(*apart);
  }

  /// Stores the phases if each round knows them.
  void note_phases() {
    const auto& first = phases_.front();
    if (!std::ranges::all_of(phases_, [&](const auto& phases) { return phases.size() == first.size(); }))
      return;
    for (std::size_t p = 0; p < first.size(); ++p) {
      std::vector<Nanoseconds> times;
      for (const auto& phases : phases_) times.push_back(phases[p].second);
      calibration_.phases.push_back({std::string(first[p].first), summarize_measured(std::move(times))});
    }
  }

  void add_offloaded(const StepResult& step) {
    offloaded_extra_.push_back(step.step_time_ns - step.exposed_ns - plain_.back());
    const auto add = [&](std::vector<Nanoseconds>& times, CopyDirection direction,
                         const std::vector<CopyTiming>& alone) {
      if (const auto time = time_per_mib(step.copies, direction, alone.front().duration.median_ns))
        times.push_back(*time);
    };
    add(out_, CopyDirection::kD2h, calibration_.d2h);
    add(in_, CopyDirection::kH2d, calibration_.h2d);
  }

  Device& device_;
  StepTimer& timer_;
  Calibration& calibration_;
  bool on_host_;
  Bytes bytes_each_ = 0;
  std::vector<Nanoseconds> plain_, beside_, offloaded_extra_, out_, in_, core_to_core_;
  std::array<std::vector<Nanoseconds>, std::size(kStandstills)> standing_;
  std::vector<std::vector<std::pair<std::string_view, Nanoseconds>>> phases_;  ///< by round
};

}  // namespace

StepScript<StepCalibration> calibrate(Device& device, CopyCalibration copies, std::size_t hooks,
                                      std::vector<SavedId> backward_order) {
  StepCalibration measured;
  Calibration& calibration = measured.costs;
  calibration = calibrate_calls(device, copies);
  StepTimer timer(device, hooks, std::move(backward_order));
  StepRounds rounds(device, timer, calibration);
  measured.offloaded_extra_ns = co_await rounds.run();
  measured.cores_moved = did_cores_move(calibration.core_to_core, copies.core_to_core_ns);
  co_return measured;
}

}  // namespace offprof
