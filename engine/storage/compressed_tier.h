#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/storage/disk_tier.h"
#include "traces/base/units.h"

namespace offprof {

/// Bytes of tensors before and after compression.
struct StoredBytes {
  Bytes given = 0;   ///< bytes of tensors that were written
  Bytes stored = 0;  ///< bytes of these tensors after compression
  Bytes peak = 0;    ///< maximum of the compressed bytes held at any time
};

struct CompressedTierFacts {
  std::string codec;    ///< name from block_codec
  std::string warning;  ///< says that the tier is memory, which no prediction counts
};

/// Returns a description, such as `host memory, compressed by blosc 1.21.3, bitshuffle and lz4`.
std::string describe(const CompressedTierFacts& facts);

/// Keeps tensors in host memory, compressed without loss. One thread compresses them, another decompresses
/// them. It has the same calls as DiskTier. Any thread may call it.
///
/// The memory that it takes depends on the values, so it cannot be predicted.
class CompressedTier {
 public:
  using Ticket = DiskTier::Ticket;

  /// Throws Error (environment) if this build has no codec or the machine has no threads left.
  CompressedTier();
  /// Completes the transfers that have begun.
  ~CompressedTier();
  CompressedTier(const CompressedTier&) = delete;
  CompressedTier& operator=(const CompressedTier&) = delete;

  /// Reserves an extent. Takes no memory yet, so it never refuses.
  std::optional<Extent> reserve(Bytes bytes, std::string* why_not = nullptr);
  /// Frees the contents of an extent; first waits for its transfers in progress.
  void release(const Extent& extent);

  /// Begins a transfer as DiskTier::write and DiskTier::read do. A read must read all bytes that were
  /// written. If there is no memory for the compressed bytes, `wait` throws.
  Ticket write(const Extent& extent, const std::byte* from, Bytes bytes, std::int64_t tag = 0);
  Ticket read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag = 0);

  bool is_done(Ticket ticket) const;
  /// Returns when the transfer has ended. Throws Error (environment) if it failed and no records were taken
  /// since.
  void wait(Ticket ticket) const;

  /// Waits until no transfer is in progress and returns the records since the last call.
  std::vector<DiskRecord> take_records();
  /// Returns the byte counts of all writes since the last call.
  StoredBytes take_stored();

  const CompressedTierFacts& facts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace offprof
