#pragma once

#include <cstddef>
#include <map>
#include <optional>
#include <set>
#include <vector>

#include "traces/units.h"

namespace offprof {

/// Pinned host memory for offloaded tensors, cut from slabs that are taken from CUDA and kept until `trim`:
/// to pin memory stops the device. Where CUDA pins no more, slabs are pageable, which makes copies slow and
/// blocking; fell_back says so. Used by one thread at a time.
class PinnedPool {
 public:
  PinnedPool() = default;
  ~PinnedPool();  ///< every piece must have been given back, and no copy may be under way
  PinnedPool(const PinnedPool&) = delete;
  PinnedPool& operator=(const PinnedPool&) = delete;

  /// A piece of at least `bytes`, best fit, owned by the pool until `free`. Throws Error (environment) where
  /// the cap or the machine has no room, perhaps because slabs without a piece in use take it: see trim.
  std::byte* allocate(Bytes bytes);
  /// `bytes` as they were asked for. Whoever uses the piece next must be ordered after its copies, and after
  /// what a disk reads into it.
  void free(std::byte* piece, Bytes bytes);
  /// Of used_bytes; nullopt: none. Slabs may exceed it by a quarter, or by one slab of the usual size, since
  /// pieces seldom fill them.
  void set_cap(std::optional<Bytes> cap_bytes) { cap_bytes_ = cap_bytes; }
  /// Gives slabs back of which no piece is in use, and returns their bytes. No copy may be under way.
  Bytes trim();

  Bytes used_bytes() const { return used_bytes_; }          ///< as requested
  Bytes reserved_bytes() const { return reserved_bytes_; }  ///< slabs
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
  std::set<std::byte*> slab_ends_;  ///< pieces on both sides of one are not joined
  std::optional<Bytes> cap_bytes_;
  Bytes used_bytes_ = 0, reserved_bytes_ = 0;
  bool fell_back_ = false;
};

}  // namespace offprof
