#include "engine/storage/disk_tier.h"

#include <fmt/format.h>

#include <algorithm>
#include <mutex>
#include <utility>

#include "engine/copies/aligned_buffer.h"
#include "engine/storage/disk_driver.h"
#include "engine/storage/disk_edges.h"
#include "engine/storage/free_list.h"
#include "engine/storage/scratch_file.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Granule of allocation: the alignment of direct I/O, and the block size of most file systems.
constexpr Bytes kGranule = kDiskAlignment;

/// Creates a queue on io_uring or threads. Sets the backend in `facts`, and the reason if it is not io_uring.
std::unique_ptr<DiskQueue> make_queue(const DiskTierOptions& options, DiskTierFacts& facts) {
  facts.backend = DiskBackend::kIoUring;
  if (options.backend != DiskBackend::kThreads) {
    auto queue = make_io_uring_queue(2 * options.queue_depth, facts.why_threads);
    if (queue != nullptr) return queue;
    if (options.backend == DiskBackend::kIoUring)
      throw environment_error("the disk tier cannot use io_uring: " + facts.why_threads,
                              "let the disk tier choose the backend, or use threads");
  }
  facts.backend = DiskBackend::kThreads;
  return make_thread_queue(2 * options.queue_depth);
}

DiskDriverOptions driver_options(const DiskTierOptions& options, const ScratchFile& file) {
  return {file.fd(),         file.facts().folder,           options.piece_bytes,          options.queue_depth,
          options.checksums, file.facts().memory_alignment, file.facts().offset_alignment};
}

}  // namespace

class DiskTier::Impl {
 public:
  Impl(const std::string& folder, const DiskTierOptions& options, const DiskEdges& edges);

  std::optional<Extent> reserve(Bytes bytes, std::string& why_not);
  void release(const Extent& extent);
  Ticket enqueue(DiskDirection direction, const Extent& extent, std::byte* memory, Bytes bytes,
                 std::int64_t tag);

  TransferBook& book() { return driver_->book(); }
  const DiskTierFacts& facts() const { return facts_; }

  mutable std::mutex mutex;  ///< protects the space accounting
  Bytes used_bytes = 0, peak_bytes = 0;
  Bytes file_bytes() const { return file_.bytes(); }

 private:
  std::string make_room(Bytes bytes);

  std::optional<Bytes> capacity_bytes_;
  ScratchFile file_;
  DiskTierFacts facts_;
  FreeList free_;
  std::unique_ptr<DiskDriver> driver_;
};

DiskTier::Impl::Impl(const std::string& folder, const DiskTierOptions& options, const DiskEdges& edges)
    : capacity_bytes_(options.capacity_bytes),
      file_(folder, options.direct_io, edges.calls),
      facts_(file_.facts()) {
  OFFPROF_CHECK(options.queue_depth > 0 && options.piece_bytes > 0 && options.piece_bytes % kGranule == 0);
  std::unique_ptr<DiskQueue> queue = make_queue(options, facts_);
  if (edges.wrap_queue) queue = edges.wrap_queue(std::move(queue));
  driver_ = std::make_unique<DiskDriver>(driver_options(options, file_), std::move(queue));
}

std::optional<Extent> DiskTier::Impl::reserve(Bytes bytes, std::string& why_not) {
  OFFPROF_CHECK(bytes > 0);
  const Bytes rounded = round_up(bytes, kGranule);
  const std::lock_guard lock(mutex);
  std::optional<Bytes> offset = free_.take(rounded);
  if (!offset) {
    why_not = make_room(rounded);
    if (!why_not.empty()) return std::nullopt;
    offset = free_.take(rounded);
  }
  used_bytes += bytes;
  peak_bytes = std::max(peak_bytes, used_bytes);
  return Extent{*offset, bytes};
}

/// Grows the file until `bytes` are free in one range at its end. Returns an empty string, or why that
/// failed.
std::string DiskTier::Impl::make_room(Bytes bytes) {
  const Bytes end = file_.bytes();
  const Bytes more = bytes - free_.free_before(end);
  if (capacity_bytes_ && more > *capacity_bytes_ - end)
    return fmt::format(
        "the disk tier's capacity of {} has no contiguous {}: {} are free, at most {} of them contiguous",
        format_bytes(*capacity_bytes_), format_bytes(bytes),
        format_bytes(free_.free_bytes() + std::max<Bytes>(*capacity_bytes_ - end, 0)),
        format_bytes(std::max(free_.largest_bytes(),
                              free_.free_before(end) + std::max<Bytes>(*capacity_bytes_ - end, 0))));
  std::string why_not = file_.grow(more);
  if (why_not.empty()) free_.give(end, more);
  return why_not;
}

void DiskTier::Impl::release(const Extent& extent) {
  book().forget(extent.offset);
  const std::lock_guard lock(mutex);
  free_.give(extent.offset, round_up(extent.bytes, kGranule));
  used_bytes -= extent.bytes;
}

DiskTier::Ticket DiskTier::Impl::enqueue(DiskDirection direction, const Extent& extent, std::byte* memory,
                                         Bytes bytes, std::int64_t tag) {
  OFFPROF_CHECK(bytes > 0 && bytes <= extent.bytes);
  Transfer transfer;
  transfer.direction = direction;
  transfer.offset = extent.offset;
  transfer.memory = memory;
  transfer.bytes = bytes;
  transfer.tag = tag;
  return driver_->enqueue(std::move(transfer));
}

DiskTier::DiskTier(const std::string& folder, const DiskTierOptions& options)
    : DiskTier(folder, options, DiskEdges{}) {}

DiskTier::DiskTier(const std::string& folder, const DiskTierOptions& options, const DiskEdges& edges)
    : impl_(std::make_unique<Impl>(folder, options, edges)) {}

DiskTier::~DiskTier() = default;

std::optional<Extent> DiskTier::reserve(Bytes bytes, std::string* why_not) {
  std::string reason;
  const std::optional<Extent> extent = impl_->reserve(bytes, reason);
  if (why_not != nullptr) *why_not = std::move(reason);
  return extent;
}

void DiskTier::release(const Extent& extent) {
  impl_->release(extent);
}

DiskTier::Ticket DiskTier::write(const Extent& extent, const std::byte* from, Bytes bytes, std::int64_t tag) {
  // One pointer serves both directions, as in an iovec(3type); a write never stores through it.
  return impl_->enqueue(DiskDirection::kWrite, extent, const_cast<std::byte*>(from), bytes, tag);
}

DiskTier::Ticket DiskTier::read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) {
  return impl_->enqueue(DiskDirection::kRead, extent, to, bytes, tag);
}

bool DiskTier::is_done(Ticket ticket) const {
  return impl_->book().is_done(ticket);
}
void DiskTier::wait(Ticket ticket) const {
  impl_->book().wait(ticket);
}
std::vector<DiskRecord> DiskTier::take_records() {
  return impl_->book().take_records();
}

Bytes DiskTier::used_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->used_bytes;
}

Bytes DiskTier::peak_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->peak_bytes;
}

Bytes DiskTier::file_bytes() const {
  const std::lock_guard lock(impl_->mutex);
  return impl_->file_bytes();
}

void DiskTier::reset_peak() {
  const std::lock_guard lock(impl_->mutex);
  impl_->peak_bytes = impl_->used_bytes;
}

const DiskTierFacts& DiskTier::facts() const {
  return impl_->facts();
}

std::string describe(const DiskTierFacts& facts) {
  std::string text = facts.backend == DiskBackend::kIoUring ? "io_uring" : "threads";
  if (!facts.why_threads.empty()) text += fmt::format(" ({})", facts.why_threads);
  text += facts.direct_io ? ", direct I/O" : fmt::format(", buffered I/O ({})", facts.why_buffered);
  return text + fmt::format(", {} in {} with {} free", facts.file_system, facts.folder,
                            format_bytes(facts.free_bytes));
}

}  // namespace offprof
