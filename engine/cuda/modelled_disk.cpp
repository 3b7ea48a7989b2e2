#include "engine/cuda/modelled_disk.h"

#include <algorithm>
#include <memory>

namespace offprof {

std::shared_ptr<DiskTransfer> ModelledDisk::transfer(DiskRecord record, const LinkDirection& speed,
                                                     Nanoseconds& free) {
  record.begin_ns = std::max(record.begin_ns, free);
  record.end_ns = record.begin_ns + (speed.bytes_per_second > 0 ? speed.duration(record.bytes) : 0);
  free = record.end_ns;
  records_.push_back(record);
  auto done = std::make_shared<DiskTransfer>();
  done->end_ns = record.end_ns;
  return done;
}

DeviceDisk::Transfer ModelledDisk::after(CopyQueue queue, const std::shared_ptr<DiskTransfer>& write) {
  write->begun = 1;
  gpu_.note_point(write.get(), stream_of_(queue));
  return {write.get(), [&gpu = gpu_, write](const DiskTransfer* point) { gpu.forget_point(point); }};
}

void ModelledDisk::wait(const Transfer& transfer) {
  gpu_.hold_host(transfer->end_ns);
  if (transfer->begun > 0) gpu_.host_saw_point(transfer.get());
}

std::vector<DiskRecord> ModelledDisk::take_records() {
  for (DiskRecord& record : records_) {
    record.begin_ns = on_device_clock_(record.begin_ns);
    record.end_ns = on_device_clock_(record.end_ns);
  }
  return std::exchange(records_, {});
}

}  // namespace offprof
