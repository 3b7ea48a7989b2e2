#include "engine/cuda/modelled_disk.h"

#include <algorithm>
#include <memory>

namespace offprof {

DeviceDisk::Transfer ModelledDisk::transfer(DiskRecord record, const LinkDirection& speed,
                                            Nanoseconds& free) {
  record.begin_ns = std::max(record.begin_ns, free);
  record.end_ns = record.begin_ns + (speed.bytes_per_second > 0 ? speed.duration(record.bytes) : 0);
  free = record.end_ns;
  records_.push_back(record);
  auto done = std::make_shared<DiskTransfer>();
  done->end_ns = record.end_ns;
  return done;
}

std::vector<DiskRecord> ModelledDisk::take_records() {
  for (DiskRecord& record : records_) {
    record.begin_ns = on_device_clock_(record.begin_ns);
    record.end_ns = on_device_clock_(record.end_ns);
  }
  return std::exchange(records_, {});
}

}  // namespace offprof
