#include "profiler/calibration/cost_calibration.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/devices/host_memory.h"
#include "traces/base/steady_clock.h"

namespace offprof {
namespace {

/// The costs are a few percent of a step, and so is a machine's noise: three rounds are not enough.
constexpr int kLeastRounds = 5;
/// Rounds beyond the least are only for steps short enough for this budget.
constexpr Nanoseconds kRoundsBudget = 6'000'000'000;
/// Lengths of the pauses, as if compute waited for a copy: from short to so long that a longer one costs no
/// more.
constexpr Nanoseconds kStandstills[] = {300'000, 3'000'000};
/// A step with pauses stands still for about as long as it computes, but at least for this time.
constexpr Nanoseconds kLeastStanding = 10'000'000;
/// Share of the step in which either copy stream is busy. A smaller share makes more of the result noise, but
/// the copies should end before the step does.
constexpr double kCopyingShare = 0.5;
constexpr Bytes kLeastCopy = 4 * kKiB, kMostCopy = 4 * kMiB;

/// Calls a function at each hook of a step that keeps everything.
class HookAction final : public StepListener {
 public:
  explicit HookAction(std::function<void()> action) : action_(std::move(action)) {}

  void on_pack(SavedId, const at::Tensor&, const PackRequest&, const PackDecision&) override { action_(); }
  void on_unpack(SavedId) override { action_(); }

 private:
  std::function<void()> action_;
};

/// Returns the time on the clock that measures the calling thread. The marks of a device that computes on the
/// host are times, so that such a device may have its own clock.
Nanoseconds now_on(Device& device) {
  return device.torch_device().is_cpu() ? device.time_of(device.mark()) : steady_now();
}

void stand_still(Device& device, Nanoseconds duration) {
  for (const Nanoseconds end = now_on(device) + duration; now_on(device) < end;) {
  }
}

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

/// Copies in both directions, one at each hook. Nothing waits for them. They cycle through more memory than
/// most caches hold, like the copies of a step.
class CopiesBeside {
 public:
  CopiesBeside(Device& device, Bytes bytes)
      : device_(device),
        bytes_(bytes),
        from_device_(device.allocate(kMemory)),
        to_device_(device.allocate(kMemory)),
        to_host_(device, kMemory),
        from_host_(device, kMemory),
        idle_at_end_(device) {
    std::memset(from_host_.get(), 1, kMemory);  // unwritten memory may be one page of zeros
  }

  void copy() {
    const Bytes offset = copies_ / 2 * bytes_ % (kMemory - bytes_);
    const bool out = copies_++ % 2 == 0;
    const Nanoseconds begin = now_on(device_);
    if (out)
      device_.copy(CopyQueue::kD2h,
                   {to_host_.get() + offset, at(from_device_, offset), bytes_, CopyDirection::kD2h, 0});
    else
      device_.copy(CopyQueue::kH2d,
                   {at(to_device_, offset), from_host_.get() + offset, bytes_, CopyDirection::kH2d, 0});
    asking_ns_ += now_on(device_) - begin;
  }

  Bytes copied() const { return copies_ * bytes_; }
  /// Returns the time that requesting copies took of the model's thread; 0 if the host does not compute.
  Nanoseconds asking_ns() const { return device_.torch_device().is_cpu() ? asking_ns_ : 0; }

 private:
  static constexpr Bytes kMemory = 64 * kMiB;

  static std::byte* at(const c10::Storage& storage, Bytes offset) {
    return static_cast<std::byte*>(storage.mutable_data()) + offset;
  }

  Device& device_;
  Bytes bytes_;
  c10::Storage from_device_, to_device_;
  HostMemory to_host_, from_host_;
  std::int64_t copies_ = 0;
  Nanoseconds asking_ns_ = 0;
  IdleAtEnd idle_at_end_;
};

Bytes bytes_beside(const Link& link, Nanoseconds plain, std::size_t hooks) {
  const double slower = std::min(link.d2h.bytes_per_second, link.h2d.bytes_per_second);
  const double copies_each = static_cast<double>(hooks) / 2;
  const double bytes = kCopyingShare * slower * static_cast<double>(plain) / 1e9 / std::max(copies_each, 1.0);
  return std::clamp(static_cast<Bytes>(bytes), kLeastCopy, kMostCopy);
}

/// Returns what a step loses per MiB that is copied concurrently, compared with a step that only has a
/// listener.
StepScript<Nanoseconds> lost_by_copies(Device& device, StepTimer& timer, Bytes bytes, Nanoseconds listened) {
  CopiesBeside copies(device, bytes);
  HookAction action([&] { copies.copy(); });
  const Nanoseconds time = co_await timer.with(action);
  const Nanoseconds lost = time - copies.asking_ns() - listened;
  device.take_copy_records();
  const double mib = static_cast<double>(copies.copied()) / kMiB;
  co_return mib == 0 ? 0 : static_cast<Nanoseconds>(static_cast<double>(lost) / mib);
}

/// Returns the time per MiB beyond the latency of the copies; nullopt: none was copied.
std::optional<Nanoseconds> time_per_mib(std::span<const CopyRecord> copies, CopyDirection direction,
                                        Nanoseconds latency) {
  Nanoseconds time = 0;
  Bytes bytes = 0;
  for (const CopyRecord& copy : copies) {
    if (copy.direction != direction) continue;
    time += std::max<Nanoseconds>(copy.end_ns - copy.begin_ns - latency, 0);
    bytes += copy.bytes;
  }
  if (bytes == 0) return std::nullopt;
  return static_cast<Nanoseconds>(static_cast<double>(time) * kMiB / static_cast<double>(bytes));
}

/// Summarizes losses. Noise may make a loss negative; it then counts as 0.
MeasuredQuartiles summarize_losses(std::vector<Nanoseconds> losses) {
  for (Nanoseconds& loss : losses) loss = std::max<Nanoseconds>(loss, 0);
  return summarize_measured(std::move(losses));
}

int rounds_for(Nanoseconds plain, int most_rounds) {
  constexpr Nanoseconds kStepsOfRound = 10;  // two of its eight steps take twice as long
  const Nanoseconds affordable = kRoundsBudget / (kStepsOfRound * std::max<Nanoseconds>(plain, 1));
  return static_cast<int>(
      std::clamp<Nanoseconds>(affordable, std::min(kLeastRounds, most_rounds), most_rounds));
}

/// Rounds of one step of each kind. A step that follows a step with another policy finds the memory and
/// caches of that step, so it only warms up.
class StepRounds {
 public:
  StepRounds(Device& device, StepTimer& timer, Calibration& calibration, int most_rounds)
      : device_(device),
        timer_(timer),
        calibration_(calibration),
        most_rounds_(most_rounds),
        on_host_(device.torch_device().is_cpu()) {}

  /// Returns by round the extra compute time with everything offloaded, compared with the plain step.
  StepScript<std::vector<Nanoseconds>> run() {
    co_await timer_.plain();
    const Nanoseconds first = co_await timer_.plain();
    bytes_each_ = bytes_beside(link_of(calibration_), first, timer_.hooks());
    const int rounds = rounds_for(first, most_rounds_);
    for (int round = 0; round < rounds; ++round) co_await run_round();
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
  int most_rounds_;
  bool on_host_;
  Bytes bytes_each_ = 0;
  std::vector<Nanoseconds> plain_, beside_, offloaded_extra_, out_, in_, core_to_core_;
  std::array<std::vector<Nanoseconds>, std::size(kStandstills)> standing_;
  std::vector<std::vector<std::pair<std::string_view, Nanoseconds>>> phases_;  ///< by round
};

// --- Hooks, commands and events, on synthetic tensors ---

constexpr int kMadeUpTensors = 64;
constexpr std::int64_t kElements = 1024;
/// Typical time between two commands of a step.
constexpr Nanoseconds kBetweenCommands = 200'000;

std::shared_ptr<OffloadStep> step_under(Device& device, const Policy& policy) {
  return std::make_shared<OffloadStep>(device, policy, std::vector<SavedId>{},
                                       std::make_shared<const Residents>(), nullptr);
}

/// Returns a tensor on the step's device, with no work under way that the host could have to wait for.
at::Tensor idle_tensor(Device& device) {
  const at::Tensor value = at::zeros({kElements}, at::TensorOptions(device.torch_device()));
  device.synchronize();
  return value;
}

/// Measures the host's time per hook: a third of pack, unpack and release of a tensor that stays.
MeasuredQuartiles time_hooks(Device& device) {
  std::vector<Nanoseconds> times;
  for (int i = 0; i < kMostCalibrationRounds; ++i) {
    const auto step = step_under(device, preset_policy("keep"));
    const at::Tensor value = idle_tensor(device);
    const Nanoseconds begin = now_on(device);
    for (int tensor = 0; tensor < kMadeUpTensors; ++tensor) step->pack(value);
    for (SavedId tensor = 0; tensor < kMadeUpTensors; ++tensor) step->unpack(tensor);
    for (SavedId tensor = 0; tensor < kMadeUpTensors; ++tensor) step->release(tensor);
    times.push_back((now_on(device) - begin) / (3 * kMadeUpTensors));
  }
  return summarize_measured(std::move(times));
}

/// Measures the host's time for a pack that offloads, minus that of a hook.
MeasuredQuartiles time_commands(Device& device, Nanoseconds hook) {
  Policy policy = preset_policy("offload");
  policy.stash_count = kMadeUpTensors;
  const auto step = step_under(device, policy);
  std::vector<Nanoseconds> times;
  for (int tensor = 0; tensor < kMadeUpTensors; ++tensor) {
    const at::Tensor value = idle_tensor(device);
    stand_still(device, kBetweenCommands);
    const Nanoseconds begin = now_on(device);
    step->pack(value);
    times.push_back(std::max<Nanoseconds>(now_on(device) - begin - hook, 0));
  }
  for (SavedId tensor = 0; tensor < kMadeUpTensors; ++tensor) step->release(tensor);
  return summarize_measured(std::move(times));
}

/// Measures the host's time to wait for a copy that is done. A GPU's stream waits for each copy only once, so
/// each wait has a new copy.
MeasuredQuartiles time_events(Device& device) {
  const c10::Storage storage = device.allocate(kLeastCopy);
  const HostMemory host(device, kLeastCopy);
  const IdleAtEnd idle_at_end(device);
  const auto copy = [&] {
    return device.copy(CopyQueue::kD2h, {host.get(), storage.data(), kLeastCopy, CopyDirection::kD2h, 0});
  };
  Device::Event event = copy();
  device.wait(CopyQueue::kD2h, event);
  const bool on_host = device.torch_device().is_cpu();
  std::vector<Nanoseconds> times;
  for (int i = 0; i < kMadeUpTensors; ++i) {
    if (!on_host) event = copy();
    if (!on_host) device.synchronize();
    const Nanoseconds begin = now_on(device);
    device.wait(CopyQueue::kD2h, event);
    times.push_back(now_on(device) - begin);
  }
  return summarize_measured(std::move(times));
}

/// Returns true if the distance of the cores changed during `rounds`, or since the copies were measured
/// (`before`).
bool did_cores_move(const MeasuredQuartiles& rounds, const std::vector<Nanoseconds>& before) {
  return !are_as_far_apart(rounds.low_ns, rounds.high_ns) ||
         !std::ranges::all_of(before,
                              [&](Nanoseconds apart) { return are_as_far_apart(apart, rounds.median_ns); });
}

/// Measures the time that the engine takes of the thread that calls it.
void calibrate_calls(Device& device, Calibration& calibration) {
  calibration.hook = time_hooks(device);
  calibration.command = time_commands(device, calibration.hook.median_ns);
  calibration.event = time_events(device);
  device.take_copy_records();
  device.take_exposed_ns();
}

}  // namespace

StepScript<StepCalibration> calibrate(Device& device, CopyCalibration copies, std::size_t hooks,
                                      std::vector<SavedId> backward_order, int most_rounds) {
  StepCalibration measured;
  Calibration& calibration = measured.costs;
  calibration.d2h = copies.d2h;
  calibration.h2d = copies.h2d;
  calibration.start = copies.start;
  calibrate_calls(device, calibration);
  StepTimer timer(device, hooks, std::move(backward_order));
  StepRounds rounds(device, timer, calibration, most_rounds);
  measured.offloaded_extra_ns = co_await rounds.run();
  measured.cores_moved = did_cores_move(calibration.core_to_core, copies.core_to_core_ns);
  co_return measured;
}

}  // namespace offprof
