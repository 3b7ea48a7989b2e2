#pragma once

#include <optional>
#include <string>
#include <vector>

#include "engine/devices/disk/device_disk.h"

namespace offprof {

/// Passes every call on to a disk. Base of disks that misbehave on purpose.
class DiskWrapper : public DeviceDisk {
 public:
  explicit DiskWrapper(DeviceDisk& inner) : inner_(inner) {}

  std::optional<Extent> reserve(Bytes bytes, std::string* why_not) override {
    return inner_.reserve(bytes, why_not);
  }
  void release(const Extent& extent) override { inner_.release(extent); }
  Transfer write(const Extent& extent, const std::byte* from, Bytes bytes, CopyQueue queue,
                 std::int64_t tag) override {
    return inner_.write(extent, from, bytes, queue, tag);
  }
  Transfer read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) override {
    return inner_.read(extent, to, bytes, tag);
  }
  void hold(CopyQueue queue, const Transfer& read) override { inner_.hold(queue, read); }
  void wait(const Transfer& transfer) override { inner_.wait(transfer); }
  bool check(const Transfer& read) override { return inner_.check(read); }
  std::optional<Error> take_failure() override { return inner_.take_failure(); }
  std::vector<DiskRecord> take_records() override { return inner_.take_records(); }
  std::optional<StoredBytes> take_stored() override { return inner_.take_stored(); }
  std::string warning() const override { return inner_.warning(); }
  std::string description() const override { return inner_.description(); }

 private:
  DeviceDisk& inner_;
};

}  // namespace offprof
