#include "profiler/training/step_counters.h"

namespace offprof {
namespace {

void take_copies(Device& device, StepResult& result) {
  result.copies = device.take_copy_records();
  for (const CopyRecord& copy : result.copies)
    (copy.direction == CopyDirection::kD2h ? result.d2h_busy_ns : result.h2d_busy_ns) +=
        copy.end_ns - copy.begin_ns;
  if (DeviceDisk* const disk = device.disk()) {
    result.disk_transfers = disk->take_records();
    result.disk_stored = disk->take_stored();
  }
}

}  // namespace

void reset_counters(Device& device, ParameterOffloader* offloader) {
  device.synchronize();
  device.take_copy_records();
  if (DeviceDisk* const disk = device.disk()) {
    disk->take_records();
    disk->take_stored();
  }
  device.take_exposed_ns();
  device.forget_marks();
  device.reset_peak();
  if (offloader != nullptr) offloader->take_traffic();
}

void take_counters(Device& device, ParameterOffloader* offloader, const OffloadStep& step,
                   StepResult& result) {
  take_copies(device, result);
  result.exposed_ns = device.take_exposed_ns();
  result.host_peak_bytes = step.host_peak_bytes();
  result.host_reserved_bytes = device.host_reserved_bytes();
  const ParameterTraffic parameters = offloader != nullptr ? offloader->take_traffic() : ParameterTraffic{};
  result.d2h_bytes = step.d2h_bytes() + parameters.d2h;
  result.h2d_bytes = step.h2d_bytes() + parameters.h2d;
  result.disk_peak_bytes = step.disk().peak_bytes();
  result.disk_write_bytes = step.disk().write_bytes() + parameters.disk_write;
  result.disk_read_bytes = step.disk().read_bytes() + parameters.disk_read;
  result.disk_refusals = step.disk().refusals();
  result.refused_reloads = step.refused_reloads();
  result.ledger = step.ledger();
  result.commands = step.commands();
}

}  // namespace offprof
