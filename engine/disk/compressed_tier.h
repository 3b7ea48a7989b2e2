#pragma once

#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "engine/disk/disk_tier.h"
#include "traces/units.h"

namespace offprof {

/// What compression made of tensors.
struct StoredBytes {
  Bytes given = 0;   ///< of tensors that were written
  Bytes stored = 0;  ///< that they take compressed
  Bytes peak = 0;    ///< of what lay there at any time
};

struct CompressedTierFacts {
  std::string codec;    ///< as block_codec has it
  std::string warning;  ///< that it is memory, which no prediction counts
};

/// `host memory, compressed by blosc 1.21.3, bitshuffle and lz4`.
std::string describe(const CompressedTierFacts& facts);

/// Tensors in host memory, compressed without loss by a thread of its own and made whole by another: what
/// DiskTier is to a disk, call by call. Any thread may call it.
///
/// What it takes depends on values, so that nothing says beforehand how much that is.
class CompressedTier {
 public:
  using Ticket = DiskTier::Ticket;

  /// Throws Error (environment) where this build has no codec, or the machine no threads left.
  CompressedTier();
  /// Ends what was begun.
  ~CompressedTier();
  CompressedTier(const CompressedTier&) = delete;
  CompressedTier& operator=(const CompressedTier&) = delete;

  /// Takes nothing yet, and so is never refused.
  std::optional<Extent> reserve(Bytes bytes, std::string* why_not = nullptr);
  /// Lets go of what lies there; first waits for what is under way in it.
  void release(const Extent& extent);

  /// See DiskTier::write and DiskTier::read, which here reads all that was written. Where there is no memory
  /// for what is compressed, `wait` throws.
  Ticket write(const Extent& extent, const std::byte* from, Bytes bytes, std::int64_t tag = 0);
  Ticket read(const Extent& extent, std::byte* to, Bytes bytes, std::int64_t tag = 0);

  bool is_done(Ticket ticket) const;
  /// Returns when it has ended. Throws Error (environment) if it failed and no records were taken since.
  void wait(Ticket ticket) const;

  /// Waits until nothing is under way, and hands out the records since the last call.
  std::vector<DiskRecord> take_records();
  /// Likewise of all that was written since the last call.
  StoredBytes take_stored();

  const CompressedTierFacts& facts() const;

 private:
  class Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace offprof
