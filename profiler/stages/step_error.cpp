#include "profiler/stages/step_error.h"

#include <optional>

#include "engine/torch/torch_error.h"

namespace offprof {
namespace {

/// Returns `error` with the device's notes: a model may have failed because it read zeros.
Error with_notes(const Error& error, Device& device) {
  std::string hint = error.hint();
  for (const std::string& note : device.take_notes()) hint += (hint.empty() ? "" : "; ") + note;
  return {error.kind(), error.what(), hint};
}

}  // namespace

std::string describe(const OutOfMemory& refusal) {
  const std::string asked =
      refusal.asked_bytes > 0 ? format_bytes(refusal.asked_bytes) + " requested, " : "before a step begins, ";
  const std::string of =
      refusal.capacity_bytes ? " of " + format_bytes(*refusal.capacity_bytes) : std::string();
  return "out of device memory: " + asked + format_bytes(refusal.live_bytes) + " live" + of;
}

Error out_of_memory_error(const OutOfMemory& refusal) {
  const std::string message = describe(refusal);
  if (!refusal.capacity_bytes)
    return environment_error(
        message,
        "the recorded passes may use the whole device: use a smaller batch, or --device virtual, "
        "whose memory is unlimited in these passes; per_process_memory_fraction in "
        "PYTORCH_CUDA_ALLOC_CONF reduces the memory that they may use");
  return environment_error(message,
                           "find a policy that fits: record a trace without --device-memory, with -o t.json, "
                           "then: offprof tune t.json --memory-budget " +
                               std::to_string(*refusal.capacity_bytes) + "B");
}

void forget_refusals(Device& device) {
  device.take_out_of_memory();
  device.take_host_refusal();
  device.take_stream_refusal();
  device.take_model_refusal();
}

Error step_error(const std::exception& error, Device& device, const std::string& program) {
  lift_limits(device);
  if (const auto refusal = device.take_stream_refusal()) return *refusal;
  if (const auto refusal = device.take_model_refusal()) return *refusal;
  if (const auto refusal = device.take_host_refusal()) return *refusal;
  if (DeviceDisk* const disk = device.disk())
    if (const auto failure = disk->take_failure()) return *failure;
  if (const auto refusal = device.take_out_of_memory()) return out_of_memory_error(*refusal);
  if (const auto* ours = dynamic_cast<const Error*>(&error)) return with_notes(*ours, device);
  return with_notes(input_error(program + ": LibTorch stopped: " + readable_reason(error)), device);
}

void lift_limits(Device& device) {
  device.set_capacity(std::nullopt);
  device.set_host_capacity(std::nullopt);
}

}  // namespace offprof
