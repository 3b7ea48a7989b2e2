#pragma once

#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "engine/device_disk.h"
#include "engine/disk/compressed_tier.h"
#include "engine/disk/disk_tier.h"
#include "engine/host/copy_stream.h"

namespace offprof {

/// A tier beside a device whose copy queues are threads: a write is handed over by the thread that has
/// made the copy, and a copy in waits on its own thread for what it copies. The one that computes never does
/// but where it is told to.
template <class Tier>
class HostDiskOver final : public DeviceDisk {
 public:
  /// The streams and `exposed_ns`, to which waiting is added, must outlive it. Throws what Tier throws.
  HostDiskOver(const DiskRequest& request, CopyStream& d2h, CopyStream& h2d, Nanoseconds& exposed_ns);

  std::optional<Extent> reserve(Bytes bytes, std::string* why_not) override {
    return tier_.reserve(bytes, why_not);
  }
  void release(const Extent& extent) override { tier_.release(extent); }
  Transfer write(const Extent& extent, const std::byte* from, Bytes bytes, CopyQueue queue,
                 std::int64_t tag) override;
  Transfer read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) override;
  void hold(CopyQueue queue, const Transfer& read) override;
  void wait(const Transfer& transfer) override;
  void check(const Transfer& read) override { end(*read); }
  std::optional<Error> take_failure() override { return std::exchange(failure_, std::nullopt); }
  std::vector<DiskRecord> take_records() override { return tier_.take_records(); }
  std::optional<StoredBytes> take_stored() override;
  std::string warning() const override { return tier_.facts().warning; }
  std::string description() const override { return describe(tier_.facts()); }

 private:
  void end(const DiskTransfer& transfer);
  CopyStream& stream(CopyQueue queue) { return queue == CopyQueue::kD2h ? d2h_ : h2d_; }

  CopyStream& d2h_;
  CopyStream& h2d_;
  Nanoseconds& exposed_ns_;
  std::optional<Error> failure_;
  Tier tier_;
};

using HostDisk = HostDiskOver<DiskTier>;
using HostCompressedMemory = HostDiskOver<CompressedTier>;

}  // namespace offprof
