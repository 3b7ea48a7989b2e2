#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "traces/base/units.h"

namespace offprof {

/// Pinned host memory for offloaded tensors. Pieces are cut from slabs, which are allocated from CUDA and
/// kept until `trim`, because pinning memory stops the device. If CUDA pins no more memory, slabs are
/// pageable, which makes copies slow and blocking; fell_back reports this. Used by one thread at a time.
class PinnedPool {
 public:
  PinnedPool() = default;
  ~PinnedPool();  ///< every piece must have been freed, and no copy may be in progress
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  /// Returns a piece of at least `bytes` (best fit), owned by the pool until `free`. Throws Error
  /// (environment) if the cap or the machine has no room, perhaps because of slabs without a piece in use:
  /// see trim.
  std::byte* allocate(Bytes bytes);
  /// Frees a piece; `bytes` as requested. The next user of the piece must be ordered after its copies and
  /// after reads from a disk into it.
  void free(std::byte* piece, Bytes bytes);
  /// Limits used_bytes; nullopt: no limit. Slabs may exceed the cap by a quarter, or by one slab of the usual
  /// size, since pieces seldom fill them.
  void set_cap(std::optional<Bytes> cap_bytes) { cap_bytes_ = cap_bytes; }
  /// Frees the slabs without a piece in use, and returns their bytes. No copy may be in progress.
  Bytes trim();

  Bytes used_bytes() const { return used_bytes_; }          ///< as requested
  Bytes reserved_bytes() const { return reserved_bytes_; }  ///< size of the slabs
  bool fell_back() const { return fell_back_; }             ///< a slab is pageable

 private:
  struct Slab {
    std::byte* memory = nullptr;
    Bytes bytes = 0;
    bool pinned = false;
  };
  using Pieces = std::map<std::byte*, Bytes>;  ///< by address, with their sizes

  void add_slab(Bytes least_bytes);
  Bytes slab_bytes(Bytes least_bytes) const;
  static void give_back(const Slab& slab);
  std::byte* take_best_fit(Bytes bytes);
  void add_free(std::byte* piece, Bytes bytes);
  void remove_free(Pieces::iterator piece);

  std::vector<Slab> slabs_;
  Pieces free_;
  std::multimap<Bytes, std::byte*> free_by_size_;
  std::set<std::byte*> slab_ends_;  ///< pieces on both sides of such an end are not joined
  std::optional<Bytes> cap_bytes_;
  Bytes used_bytes_ = 0, reserved_bytes_ = 0;
  bool fell_back_ = false;
};

}  // namespace offprof
