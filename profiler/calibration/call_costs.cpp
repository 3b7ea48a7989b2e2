#include "profiler/calibration/call_costs.h"

#include <ATen/Functions.h>

#include <algorithm>
#include <memory>
#include <utility>
#include <vector>

#include "engine/autograd/offload_step.h"
#include "engine/devices/host_memory.h"
#include "profiler/calibration/disturbances.h"

namespace offprof {
namespace {

constexpr int kRounds = 15;
constexpr int kMadeUpTensors = 64;
constexpr Bytes kEventCopy = 4 * kKiB;
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
  for (int i = 0; i < kRounds; ++i) {
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
  const c10::Storage storage = device.allocate(kEventCopy);
  const HostMemory host(device, kEventCopy);
  const IdleAtEnd idle_at_end(device);
  const auto copy = [&] {
    return device.copy(CopyQueue::kD2h, {host.get(), storage.data(), kEventCopy, CopyDirection::kD2h, 0});
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

}  // namespace

Calibration calibrate_calls(Device& device, const CopyCalibration& copies) {
  Calibration calibration;
  calibration.d2h = copies.d2h;
  calibration.h2d = copies.h2d;
  calibration.start = copies.start;
  calibration.hook = time_hooks(device);
  calibration.command = time_commands(device, calibration.hook.median_ns);
  calibration.event = time_events(device);
  device.take_copy_records();
  device.take_exposed_ns();
  return calibration;
}

}  // namespace offprof
