#include "profiler/calibration.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <functional>
#include <memory>
#include <vector>

#include "engine/host/copy_stream.h"
#include "engine/offload_step.h"

namespace offprof {
namespace {

/// What is looked for is a few percent of a step, and so is a machine's noise: three rounds are not enough.
constexpr int kMostRounds = 15, kLeastRounds = 5;
/// Rounds beyond the least are for steps so short that this pays for them.
constexpr Nanoseconds kRoundsBudget = 6'000'000'000;
/// What compute may have stood for a copy, from short to so long that nothing more is lost.
constexpr Nanoseconds kStandstills[] = {300'000, 3'000'000};
/// A step that stands still does so for about as long as it computes, but not for less than that.
constexpr Nanoseconds kLeastStanding = 10'000'000;
/// Share of the step in which either copy stream is busy beside it: the less, the more of what is found is
/// noise; yet the copies should be done before the step is.
constexpr double kCopyingShare = 0.5;
constexpr Bytes kLeastCopy = 4 * kKiB, kMostCopy = 4 * kMiB;

/// Does something at each hook of a step that keeps everything.
class HookAction final : public StepListener {
 public:
  explicit HookAction(std::function<void()> action) : action_(std::move(action)) {}

  void on_hook_begin() override {}
  void on_hook_end() override {}
  void on_pack(SavedId, const at::Tensor&, const PackRequest&, const PackDecision&) override { action_(); }
  void on_unpack(SavedId) override { action_(); }
  void on_release(SavedId) override {}
  void on_node_end(std::span<const SavedId>, std::span<const SavedId>) override {}
  void on_backward_end() override {}
  void on_command(const Command&, Device::TimeMark, Device::TimeMark) override {}
  void on_reload(CopyId, AllocationId) override {}
  bool wants_node_ends() const override { return false; }

 private:
  std::function<void()> action_;
};

void stand_still(Nanoseconds duration) {
  for (const Nanoseconds end = steady_now() + duration; steady_now() < end;) {
  }
}

/// Steps of one kind, each against the plain one of its round.
class StepTimer {
 public:
  StepTimer(Trainer& trainer, std::size_t hooks, const std::vector<SavedId>& backward_order)
      : trainer_(trainer), hooks_(std::max<std::size_t>(hooks, 1)), backward_order_(backward_order) {}

  Nanoseconds plain() { return trainer_.step(preset_policy("keep"), {}, Recording::kNone).step_time_ns; }

  Nanoseconds offloaded_compute() {
    const StepResult step = trainer_.step(preset_policy("offload"), backward_order_, Recording::kNone);
    return step.step_time_ns - step.exposed_ns;
  }

  /// What a step loses by each of its standstills of that length.
  Nanoseconds lost_by_standing(Nanoseconds stood, Nanoseconds plain) {
    const auto wanted = static_cast<std::size_t>(std::max(plain, kLeastStanding) / stood) + 1;
    const std::size_t every = std::max<std::size_t>(hooks_ / wanted, 1);
    std::size_t hook = 0;
    Nanoseconds standing = 0, count = 0;
    HookAction action([&] {
      if (hook++ % every != 0) return;
      const Nanoseconds begin = steady_now();
      stand_still(stood);
      standing += steady_now() - begin;
      ++count;
    });
    const Nanoseconds time = step_with(action);
    return count == 0 ? 0 : (time - standing - plain) / count;
  }

  Nanoseconds step_with(HookAction& action) {
    return trainer_.step(preset_policy("keep"), {}, Recording::kNone, &action).step_time_ns;
  }
  std::size_t hooks() const { return hooks_; }

 private:
  Trainer& trainer_;
  std::size_t hooks_;
  const std::vector<SavedId>& backward_order_;
};

/// Copies in both directions, one at each hook, with nothing waiting for them. They go round in more memory
/// than is in the caches, as those of a step do.
class CopiesBeside {
 public:
  CopiesBeside(Device& device, Bytes bytes)
      : device_(device),
        bytes_(bytes),
        from_device_(device.allocate(kMemory)),
        to_device_(device.allocate(kMemory)),
        to_host_(device.allocate_host(kMemory)),
        from_host_(device.allocate_host(kMemory)) {}
  ~CopiesBeside() {
    device_.take_copy_records();
    device_.free_host(to_host_, kMemory);
    device_.free_host(from_host_, kMemory);
  }
  CopiesBeside(const CopiesBeside&) = delete;
  CopiesBeside& operator=(const CopiesBeside&) = delete;

  void copy() {
    const Bytes offset = copies_ / 2 * bytes_ % (kMemory - bytes_);
    const bool out = copies_++ % 2 == 0;
    const Nanoseconds begin = steady_now();
    if (out)
      device_.copy(CopyQueue::kD2h,
                   {to_host_ + offset, at(from_device_, offset), bytes_, CopyDirection::kD2h, 0});
    else
      device_.copy(CopyQueue::kH2d,
                   {at(to_device_, offset), from_host_ + offset, bytes_, CopyDirection::kH2d, 0});
    asking_ns_ += steady_now() - begin;
  }

  Bytes copied() const { return copies_ * bytes_; }
  /// Of the program's time, where the host computes.
  Nanoseconds asking_ns() const { return device_.torch_device().is_cpu() ? asking_ns_ : 0; }

 private:
  static constexpr Bytes kMemory = 32 * kMiB;

  static std::byte* at(const c10::Storage& storage, Bytes offset) {
    return static_cast<std::byte*>(storage.mutable_data()) + offset;
  }

  Device& device_;
  Bytes bytes_;
  c10::Storage from_device_, to_device_;
  std::byte *to_host_, *from_host_;
  std::int64_t copies_ = 0;
  Nanoseconds asking_ns_ = 0;
};

Bytes bytes_beside(const Link& link, Nanoseconds plain, std::size_t hooks) {
  const double slower = std::min(link.d2h.bytes_per_second, link.h2d.bytes_per_second);
  const double copies_each = static_cast<double>(hooks) / 2;
  const double bytes = kCopyingShare * slower * static_cast<double>(plain) / 1e9 / std::max(copies_each, 1.0);
  return std::clamp(static_cast<Bytes>(bytes), kLeastCopy, kMostCopy);
}

/// What a step loses by each MiB that is copied beside it.
Nanoseconds lost_by_copies(Device& device, StepTimer& timer, Bytes bytes, Nanoseconds plain) {
  CopiesBeside copies(device, bytes);
  HookAction action([&] { copies.copy(); });
  const Nanoseconds lost = timer.step_with(action) - copies.asking_ns() - plain;
  const double mib = static_cast<double>(copies.copied()) / kMiB;
  return mib == 0 ? 0 : static_cast<Nanoseconds>(static_cast<double>(lost) / mib);
}

/// Noise may make a loss negative; a median of less than nothing is nothing.
Measured summarize_losses(std::vector<Nanoseconds> losses) {
  for (Nanoseconds& loss : losses) loss = std::max<Nanoseconds>(loss, 0);
  return summarize_measured(std::move(losses));
}

int rounds_for(Nanoseconds plain) {
  constexpr Nanoseconds kStepsOfRound = 6;  // two stand for as long again
  return static_cast<int>(std::clamp<Nanoseconds>(
      kRoundsBudget / (kStepsOfRound * std::max<Nanoseconds>(plain, 1)), kLeastRounds, kMostRounds));
}

void calibrate_steps(Device& device, StepTimer& timer, StepCalibration& measured) {
  Calibration& calibration = measured.costs;
  std::vector<Nanoseconds> plain, beside;
  std::vector<std::vector<Nanoseconds>> standing(std::size(kStandstills));
  const bool on_host = device.torch_device().is_cpu();
  const Nanoseconds first = timer.plain();
  const Bytes bytes = bytes_beside(link_of(calibration), first, timer.hooks());
  for (int round = 0; round < rounds_for(first); ++round) {
    plain.push_back(timer.plain());
    measured.offloaded_extra_ns.push_back(timer.offloaded_compute() - plain.back());
    beside.push_back(lost_by_copies(device, timer, bytes, plain.back()));
    for (std::size_t i = 0; on_host && i < standing.size(); ++i)
      standing[i].push_back(timer.lost_by_standing(kStandstills[i], plain.back()));
  }
  calibration.step = summarize_measured(plain);
  calibration.slowdown_per_mib = summarize_losses(beside);
  for (std::size_t i = 0; on_host && i < standing.size(); ++i)
    calibration.standstills.push_back({kStandstills[i], summarize_losses(standing[i])});
}

// --- Hooks, commands and events, on tensors made up ---

constexpr int kMadeUpTensors = 64;
constexpr std::int64_t kElements = 1024;
/// A copy stream that has nothing to do sleeps by then: to wake it is a part of a command.
constexpr Nanoseconds kBetweenCommands = 200'000;

std::shared_ptr<OffloadStep> step_under(Device& device, const Policy& policy) {
  return std::make_shared<OffloadStep>(device, policy, std::vector<SavedId>{},
                                       std::make_shared<const Residents>(), nullptr);
}

/// The time of pack, unpack and release of a tensor that stays, a third of it.
Measured time_hooks(Device& device) {
  std::vector<Nanoseconds> times;
  for (int i = 0; i < kMostRounds; ++i) {
    const auto step = step_under(device, preset_policy("keep"));
    const at::Tensor value = at::zeros({kElements});
    const Nanoseconds begin = steady_now();
    for (int tensor = 0; tensor < kMadeUpTensors; ++tensor) step->pack(value);
    for (SavedId tensor = 0; tensor < kMadeUpTensors; ++tensor) step->unpack(tensor);
    for (SavedId tensor = 0; tensor < kMadeUpTensors; ++tensor) step->release(tensor);
    times.push_back((steady_now() - begin) / (3 * kMadeUpTensors));
  }
  return summarize_measured(std::move(times));
}

/// The time of a pack that offloads, less that of a hook.
Measured time_commands(Device& device, Nanoseconds hook) {
  Policy policy = preset_policy("offload");
  policy.stash_count = kMadeUpTensors;
  const auto step = step_under(device, policy);
  std::vector<Nanoseconds> times;
  for (int tensor = 0; tensor < kMadeUpTensors; ++tensor) {
    const at::Tensor value = at::zeros({kElements});
    stand_still(kBetweenCommands);
    const Nanoseconds begin = steady_now();
    step->pack(value);
    times.push_back(std::max<Nanoseconds>(steady_now() - begin - hook, 0));
  }
  for (SavedId tensor = 0; tensor < kMadeUpTensors; ++tensor) step->release(tensor);
  return summarize_measured(std::move(times));
}

Measured time_events(Device& device) {
  const c10::Storage storage = device.allocate(kLeastCopy);
  std::byte* host = device.allocate_host(kLeastCopy);
  const Device::Event event =
      device.copy(CopyQueue::kD2h, {host, storage.data(), kLeastCopy, CopyDirection::kD2h, 0});
  device.wait(CopyQueue::kD2h, event);
  std::vector<Nanoseconds> times;
  for (int i = 0; i < kMadeUpTensors; ++i) {
    const Nanoseconds begin = steady_now();
    device.wait(CopyQueue::kD2h, event);
    times.push_back(steady_now() - begin);
  }
  device.free_host(host, kLeastCopy);
  return summarize_measured(std::move(times));
}

/// Only where the thread that calls the engine is the one that computes do these take of the compute stream.
void calibrate_calls(Device& device, Calibration& calibration) {
  if (!device.torch_device().is_cpu()) return;
  calibration.hook = time_hooks(device);
  calibration.command = time_commands(device, calibration.hook.median_ns);
  calibration.event = time_events(device);
  device.take_copy_records();
  device.take_exposed_ns();
}

}  // namespace

StepCalibration calibrate(Device& device, Trainer& trainer, const CopyCalibration& copies, std::size_t hooks,
                          const std::vector<SavedId>& backward_order) {
  StepCalibration measured;
  Calibration& calibration = measured.costs;
  calibration.d2h = copies.d2h;
  calibration.h2d = copies.h2d;
  calibration.start = copies.start;
  calibrate_calls(device, calibration);
  StepTimer timer(trainer, hooks, backward_order);
  calibrate_steps(device, timer, measured);
  return measured;
}

}  // namespace offprof
