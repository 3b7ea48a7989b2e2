#include "engine/host/host_disk.h"

#include <memory>

namespace offprof {
namespace {

DiskTierOptions options_of(const DiskRequest& request) {
  DiskTierOptions options;
  options.checksums = request.checksums;
  return options;
}

}  // namespace

HostDisk::HostDisk(const DiskRequest& request, CopyStream& d2h, CopyStream& h2d, Nanoseconds& exposed_ns)
    : d2h_(d2h), h2d_(h2d), exposed_ns_(exposed_ns), tier_(request.folder, options_of(request)) {}

DeviceDisk::Transfer HostDisk::write(const Extent& extent, const std::byte* from, Bytes bytes,
                                     CopyQueue queue, std::int64_t tag) {
  const auto transfer = std::make_shared<DiskTransfer>();
  transfer->queue = queue;
  transfer->begun = stream(queue).call([this, transfer, extent, from, bytes, tag] {
    transfer->ticket = tier_.write(extent, from, bytes, tag);
  });
  return transfer;
}

DeviceDisk::Transfer HostDisk::read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) {
  const auto transfer = std::make_shared<DiskTransfer>();
  transfer->ticket = tier_.read(extent, to, bytes, tag);
  return transfer;
}

void HostDisk::hold(CopyQueue queue, const Transfer& read) {
  stream(queue).call([this, read] { tier_.wait(read->ticket); });
}

/// Whatever has become of it.
void HostDisk::end(const DiskTransfer& transfer) {
  try {
    tier_.wait(transfer.ticket);
  } catch (const Error& error) {
    failure_ = error;
    throw;
  }
}

void HostDisk::wait(const Transfer& transfer) {
  const Nanoseconds begin = steady_now();
  if (transfer->begun > 0) stream(transfer->queue).wait(transfer->begun);
  const bool was_done = tier_.is_done(transfer->ticket);
  end(*transfer);
  if (!was_done) exposed_ns_ += steady_now() - begin;
}

}  // namespace offprof
