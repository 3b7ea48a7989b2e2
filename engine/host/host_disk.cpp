#include "engine/host/host_disk.h"

#include <memory>

namespace offprof {
namespace {

template <class Tier>
Tier open_tier(const DiskRequest& request);

template <>
DiskTier open_tier<DiskTier>(const DiskRequest& request) {
  DiskTierOptions options;
  options.checksums = request.checksums;
  return DiskTier(request.folder, options);
}

template <>
CompressedTier open_tier<CompressedTier>(const DiskRequest&) {
  return CompressedTier();
}

}  // namespace

template <class Tier>
HostDiskOver<Tier>::HostDiskOver(const DiskRequest& request, CopyStream& d2h, CopyStream& h2d,
                                 Nanoseconds& exposed_ns)
    : d2h_(d2h), h2d_(h2d), exposed_ns_(exposed_ns), tier_(open_tier<Tier>(request)) {}

template <class Tier>
DeviceDisk::Transfer HostDiskOver<Tier>::write(const Extent& extent, const std::byte* from, Bytes bytes,
                                               CopyQueue queue, std::int64_t tag) {
  const auto transfer = std::make_shared<DiskTransfer>();
  transfer->queue = queue;
  transfer->begun = stream(queue).call([this, transfer, extent, from, bytes, tag] {
    transfer->ticket = tier_.write(extent, from, bytes, tag);
  });
  return transfer;
}

template <class Tier>
DeviceDisk::Transfer HostDiskOver<Tier>::read(const Extent& extent, std::byte* to, Bytes bytes,
                                              std::int64_t tag) {
  const auto transfer = std::make_shared<DiskTransfer>();
  transfer->ticket = tier_.read(extent, to, bytes, tag);
  return transfer;
}

template <class Tier>
void HostDiskOver<Tier>::hold(CopyQueue queue, const Transfer& read) {
  stream(queue).call([this, read] { tier_.wait(read->ticket); });
}

/// Whatever has become of it.
template <class Tier>
void HostDiskOver<Tier>::end(const DiskTransfer& transfer) {
  try {
    tier_.wait(transfer.ticket);
  } catch (const Error& error) {
    failure_ = error;
    throw;
  }
}

template <class Tier>
void HostDiskOver<Tier>::wait(const Transfer& transfer) {
  const Nanoseconds begin = steady_now();
  if (transfer->begun > 0) stream(transfer->queue).wait(transfer->begun);
  const bool was_done = tier_.is_done(transfer->ticket);
  end(*transfer);
  if (!was_done) exposed_ns_ += steady_now() - begin;
}

template <class Tier>
std::optional<StoredBytes> HostDiskOver<Tier>::take_stored() {
  if constexpr (requires { tier_.take_stored(); })
    return tier_.take_stored();
  else
    return std::nullopt;
}

template class HostDiskOver<DiskTier>;
template class HostDiskOver<CompressedTier>;

}  // namespace offprof
