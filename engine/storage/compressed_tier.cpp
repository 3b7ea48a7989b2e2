#include "engine/storage/compressed_tier.h"

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <new>
#include <span>
#include <utility>

#include "engine/copies/copy_stream.h"
#include "engine/storage/block_codec.h"
#include "traces/base/check.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

/// Bytes compressed at once. Beside the stored bytes, the tier takes no more memory than this.
constexpr Bytes kPieceBytes = 4 * kMiB;
/// Bytes of a tensor that are sampled to find the width of its elements.
constexpr Bytes kSampleBytes = 16 * kKiB;
constexpr std::array<int, 4> kWidths = {4, 2, 1, 8};

/// Some bytes of a tensor, compressed.
struct CompactPiece {
  std::unique_ptr<std::byte[]> data;
  Bytes bytes = 0;
};

/// Contents of one extent. Transfers of an extent run one after the other, so they need no lock.
struct EncodedTensor {
  std::vector<CompactPiece> pieces;
  Bytes whole_bytes = 0;   ///< size of the tensor; 0: nothing was written, or the write failed
  Bytes stored_bytes = 0;  ///< size of the compressed pieces
  CompressedTier::Ticket last_write = 0, last_read = 0;
};

std::span<const std::byte> part_of(const std::byte* from, Bytes begin, Bytes end) {
  return {from + begin, static_cast<std::size_t>(end - begin)};
}

/// Returns the middle of a tensor, because tensors often begin alike. The sample starts at a multiple of 8,
/// where an element of any width begins.
std::span<const std::byte> sample_of(const std::byte* from, Bytes bytes) {
  const Bytes sample = std::min(bytes, kSampleBytes);
  const Bytes begin = (bytes - sample) / 2 / 8 * 8;
  return part_of(from, begin, begin + sample);
}

/// Returns the element width that compresses best. The tier knows only bytes, and bits of equal weight lie
/// beside each other only with the right width.
int best_width(std::span<const std::byte> sample, std::span<std::byte> scratch) {
  std::array<Bytes, kWidths.size()> sizes{};
  for (std::size_t i = 0; i < kWidths.size(); ++i) sizes[i] = compress_block(sample, kWidths[i], scratch);
  return kWidths.at(static_cast<std::size_t>(std::ranges::min_element(sizes) - sizes.begin()));
}

Error no_memory(Bytes bytes) {
  return environment_error("no host memory left for a compressed tensor of " + format_bytes(bytes),
                           "Place fewer tensors there, or give a disk folder instead: --disk DIR.");
}

}  // namespace

std::string describe(const CompressedTierFacts& facts) {
  return "host memory, compressed by " + facts.codec;
}

class CompressedTier::Impl {
 public:
  Impl() : facts_{block_codec(), {}} {
    facts_.warning =
        "the disk is replaced by " + describe(facts_) +
        ": its size depends on the tensors' values, is not part of host_peak_bytes and is not predicted";
  }

  Extent reserve(Bytes bytes) {
    const std::lock_guard lock(mutex_);
    const Extent extent{next_offset_, bytes};
    next_offset_ += bytes;
    tensors_.emplace(extent.offset, std::make_shared<EncodedTensor>());
    return extent;
  }

  void release(const Extent& extent) {
    const std::shared_ptr<EncodedTensor> tensor = at(extent);
    end(tensor->last_write);
    end(tensor->last_read);
    forget(*tensor);
    const std::lock_guard lock(mutex_);
    tensors_.erase(extent.offset);
  }

  Ticket write(const Extent& extent, const std::byte* from, Bytes bytes, std::int64_t tag) {
    OFFPROF_CHECK(bytes <= extent.bytes);
    const std::shared_ptr<EncodedTensor> tensor = at(extent);
    const std::lock_guard lock(mutex_);
    const auto work = [this, tensor, before = tensor->last_read, from, bytes] {
      end(before);
      store(*tensor, from, bytes);
    };
    return tensor->last_write = writes_.enqueue({work, CopyDirection::kD2h, bytes, tag}) * 2;
  }

  Ticket read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag) {
    const std::shared_ptr<EncodedTensor> tensor = at(extent);
    const std::lock_guard lock(mutex_);
    const auto work = [this, tensor, before = tensor->last_write, to, bytes] {
      wait(before);
      restore(*tensor, to, bytes);
    };
    return tensor->last_read = reads_.enqueue({work, CopyDirection::kH2d, bytes, tag}) * 2 + 1;
  }

  bool is_done(Ticket ticket) const { return stream_of(ticket).is_reached(ticket / 2); }
  void wait(Ticket ticket) const { stream_of(ticket).wait(ticket / 2); }

  std::vector<DiskRecord> take_records() {
    std::vector<DiskRecord> records;
    const std::vector<CopyRecord> written = writes_.take_records(), read = reads_.take_records();
    for (const CopyRecord& copy : written)
      records.push_back({DiskDirection::kWrite, copy.begin_ns, copy.end_ns, copy.bytes, copy.tag});
    for (const CopyRecord& copy : read)
      records.push_back({DiskDirection::kRead, copy.begin_ns, copy.end_ns, copy.bytes, copy.tag});
    return records;
  }

  StoredBytes take_stored() {
    const std::lock_guard lock(mutex_);
    return std::exchange(stored_, {0, 0, live_bytes_});
  }

  const CompressedTierFacts& facts() const { return facts_; }

 private:
  const CopyStream& stream_of(Ticket ticket) const { return ticket % 2 == 0 ? writes_ : reads_; }

  std::shared_ptr<EncodedTensor> at(const Extent& extent) {
    const std::lock_guard lock(mutex_);
    return tensors_.at(extent.offset);
  }

  /// Waits for a transfer and ignores its result.
  void end(Ticket ticket) const noexcept {
    try {
      wait(ticket);
    } catch (...) {
      // The caller that waits for the ticket gets the error.
    }
  }

  void forget(EncodedTensor& tensor) {
    tensor.pieces.clear();
    tensor.whole_bytes = 0;
    const std::lock_guard lock(mutex_);
    live_bytes_ -= std::exchange(tensor.stored_bytes, 0);
  }

  void store(EncodedTensor& tensor, const std::byte* from, Bytes bytes) {
    forget(tensor);
    try {
      if (scratch_.empty()) scratch_.resize(kPieceBytes + kMostCodecOverhead);
      const int width = best_width(sample_of(from, bytes), scratch_);
      for (Bytes begin = 0; begin < bytes; begin += kPieceBytes)
        add_piece(tensor, part_of(from, begin, std::min(begin + kPieceBytes, bytes)), width);
    } catch (const std::bad_alloc&) {
      forget(tensor);
      throw no_memory(bytes);
    } catch (...) {
      forget(tensor);
      throw;
    }
    tensor.whole_bytes = bytes;
    const std::lock_guard lock(mutex_);
    stored_.given += bytes;
    stored_.stored += tensor.stored_bytes;
  }

  void add_piece(EncodedTensor& tensor, std::span<const std::byte> block, int width) {
    const Bytes bytes = compress_block(block, width, scratch_);
    CompactPiece& piece = tensor.pieces.emplace_back();
    piece.data = std::make_unique_for_overwrite<std::byte[]>(static_cast<std::size_t>(bytes));
    piece.bytes = bytes;
    std::copy_n(scratch_.begin(), bytes, piece.data.get());
    tensor.stored_bytes += bytes;
    const std::lock_guard lock(mutex_);
    live_bytes_ += bytes;
    stored_.peak = std::max(stored_.peak, live_bytes_);
  }

  static void restore(const EncodedTensor& tensor, std::byte* to, Bytes bytes) {
    if (tensor.whole_bytes == 0)
      throw environment_error("cannot read back a tensor whose compression failed");
    OFFPROF_CHECK(bytes == tensor.whole_bytes);
    Bytes begin = 0;
    for (const CompactPiece& piece : tensor.pieces) {
      const Bytes end = std::min(begin + kPieceBytes, bytes);
      decompress_block(part_of(piece.data.get(), 0, piece.bytes),
                       {to + begin, static_cast<std::size_t>(end - begin)});
      begin = end;
    }
  }

  CompressedTierFacts facts_;
  mutable std::mutex mutex_;                                 ///< protects the next four
  std::map<Bytes, std::shared_ptr<EncodedTensor>> tensors_;  ///< by the offset of the extent
  Bytes next_offset_ = 0, live_bytes_ = 0;
  StoredBytes stored_;
  std::vector<std::byte> scratch_;  ///< used by the writing thread
  // The threads sleep as soon as they are idle, because a spinning thread takes a core from the computation.
  // Declared last, since they use the other members; reads wait for writes.
  CopyStream writes_{Link{}, 0}, reads_{Link{}, 0};
};

CompressedTier::CompressedTier() : impl_(std::make_unique<Impl>()) {}
CompressedTier::~CompressedTier() = default;

std::optional<Extent> CompressedTier::reserve(Bytes bytes, std::string*) {
  return impl_->reserve(bytes);
}

void CompressedTier::release(const Extent& extent) {
  impl_->release(extent);
}

CompressedTier::Ticket CompressedTier::write(const Extent& extent, const std::byte* from, Bytes bytes,
                                             std::int64_t tag) {
  return impl_->write(extent, from, bytes, tag);
}

CompressedTier::Ticket CompressedTier::read(const Extent& extent, std::byte* to, Bytes bytes,
                                            std::int64_t tag) {
  return impl_->read(extent, to, bytes, tag);
}

bool CompressedTier::is_done(Ticket ticket) const {
  return impl_->is_done(ticket);
}

void CompressedTier::wait(Ticket ticket) const {
  impl_->wait(ticket);
}

std::vector<DiskRecord> CompressedTier::take_records() {
  return impl_->take_records();
}

StoredBytes CompressedTier::take_stored() {
  return impl_->take_stored();
}

const CompressedTierFacts& CompressedTier::facts() const {
  return impl_->facts();
}

}  // namespace offprof
