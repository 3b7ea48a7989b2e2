#include "engine/devices/cuda/modelled_device_disk.h"

#include <algorithm>
#include <memory>

namespace offprof {

std::shared_ptr<ModelledDeviceDisk::ModelledTransfer> ModelledDeviceDisk::transfer(DiskRecord record,
                                                                                   const LinkDirection& speed,
                                                                                   Nanoseconds& free) {
  record.begin_ns = std::max(record.begin_ns, free);
  record.end_ns = record.begin_ns + (speed.bytes_per_second > 0 ? speed.duration(record.bytes) : 0);
  free = record.end_ns;
  records_.push_back(record);
  auto done = std::make_shared<ModelledTransfer>();
  done->end_ns = record.end_ns;
  return done;
}

DeviceDisk::Transfer ModelledDeviceDisk::after(CopyQueue queue,
                                               const std::shared_ptr<ModelledTransfer>& write) {
  write->is_write = true;
  const DiskTransfer* const known_as = write.get();
  gpu_.note_point(known_as, stream_of_(queue));
  return {known_as, [&gpu = gpu_, write](const DiskTransfer* point) { gpu.forget_point(point); }};
}

void ModelledDeviceDisk::hold(CopyQueue queue, const Transfer& read) {
  gpu_.hold_stream(stream_of_(queue), modelled(read).end_ns);
}

void ModelledDeviceDisk::wait(const Transfer& transfer) {
  gpu_.hold_host(modelled(transfer).end_ns);
  if (modelled(transfer).is_write) gpu_.host_saw_point(transfer.get());
}

std::vector<DiskRecord> ModelledDeviceDisk::take_records() {
  for (DiskRecord& record : records_) {
    record.begin_ns = on_device_clock_(record.begin_ns);
    record.end_ns = on_device_clock_(record.end_ns);
  }
  return std::exchange(records_, {});
}

}  // namespace offprof
