#include "engine/devices/cuda/pinned_pool.h"

#include <cuda_runtime_api.h>

#include <algorithm>
#include <cstdlib>
#include <iterator>

#include "traces/base/error.h"

namespace offprof {
namespace {

/// Alignment of pieces, as in device allocators: copies run at full speed, and no two pieces share a cache
/// line.
constexpr Bytes kPieceGranule = 512;
/// Usual size of a slab: a step needs few slabs, and a small step does not reserve far too much.
constexpr Bytes kLeastSlab = 64 * kMiB;
constexpr Bytes kSlabGranule = 2 * kMiB;
/// Divisor of the cap: slabs may exceed the cap by cap / 4, since pieces of a step's sizes leave gaps in
/// them.
constexpr Bytes kGapsOfCap = 4;

/// Returns the bytes of the slab that a piece takes. Even pieces without bytes have distinct addresses.
Bytes piece_bytes(Bytes bytes) {
  return round_up(std::max<Bytes>(bytes, 1), kPieceGranule);
}

Error exhausted(Bytes asked, Bytes used, const std::string& why) {
  return environment_error("host memory for offloaded tensors is exhausted: " + format_bytes(asked) +
                               " requested, " + format_bytes(used) + " in use, " + why,
                           "raise --host-memory, or offload less with a larger --threshold");
}

}  // namespace

PinnedPool::~PinnedPool() {
  for (const Slab& slab : slabs_) give_back(slab);
}

void PinnedPool::give_back(const Slab& slab) {
  if (slab.pinned)
    cudaFreeHost(slab.memory);
  else
    std::free(slab.memory);
}

std::byte* PinnedPool::allocate(Bytes bytes) {
  if (cap_bytes_ && bytes > *cap_bytes_ - used_bytes_)
    throw exhausted(bytes, used_bytes_, "the cap is " + format_bytes(*cap_bytes_));
  const Bytes taken = piece_bytes(bytes);
  std::byte* piece = take_best_fit(taken);
  if (piece == nullptr) {
    add_slab(taken);
    piece = take_best_fit(taken);
  }
  used_bytes_ += bytes;
  return piece;
}

void PinnedPool::free(std::byte* piece, Bytes bytes) {
  used_bytes_ -= bytes;
  Bytes joined = piece_bytes(bytes);
  const auto after = free_.lower_bound(piece);
  if (after != free_.end() && after->first == piece + joined && !slab_ends_.contains(piece + joined)) {
    joined += after->second;
    remove_free(after);
  }
  const auto next = free_.lower_bound(piece);
  if (next != free_.begin() && !slab_ends_.contains(piece)) {
    const auto before = std::prev(next);
    if (before->first + before->second == piece) {
      piece = before->first;
      joined += before->second;
      remove_free(before);
    }
  }
  add_free(piece, joined);
}

Bytes PinnedPool::trim() {
  const Bytes before = reserved_bytes_;
  std::erase_if(slabs_, [&](const Slab& slab) {
    const auto whole = free_.find(slab.memory);
    if (whole == free_.end() || whole->second != slab.bytes) return false;
    remove_free(whole);
    slab_ends_.erase(slab.memory + slab.bytes);
    reserved_bytes_ -= slab.bytes;
    give_back(slab);
    return true;
  });
  return before - reserved_bytes_;
}

/// Returns the size of the next slab: no more than the cap leaves, if that is enough. Throws if slabs would
/// exceed the cap by more than gaps explain.
Bytes PinnedPool::slab_bytes(Bytes least_bytes) const {
  const Bytes left = cap_bytes_ ? std::max<Bytes>(*cap_bytes_ - reserved_bytes_, 0) : kLeastSlab;
  const Bytes bytes = round_up(std::max(least_bytes, std::min(left, kLeastSlab)), kSlabGranule);
  if (cap_bytes_ && bytes > *cap_bytes_ - reserved_bytes_ + std::max(*cap_bytes_ / kGapsOfCap, kLeastSlab))
    throw exhausted(least_bytes, used_bytes_,
                    format_bytes(reserved_bytes_) + " reserved, the cap is " + format_bytes(*cap_bytes_));
  return bytes;
}

void PinnedPool::add_slab(Bytes least_bytes) {
  Slab slab;
  slab.bytes = slab_bytes(least_bytes);
  void* memory = nullptr;
  slab.pinned =
      cudaHostAlloc(&memory, static_cast<std::size_t>(slab.bytes), cudaHostAllocDefault) == cudaSuccess;
  if (!slab.pinned) {
    cudaGetLastError();
    fell_back_ = true;
    memory =
        std::aligned_alloc(static_cast<std::size_t>(kPieceGranule), static_cast<std::size_t>(slab.bytes));
    if (memory == nullptr) throw exhausted(least_bytes, used_bytes_, "the machine has no more memory");
  }
  slab.memory = static_cast<std::byte*>(memory);
  slabs_.push_back(slab);
  reserved_bytes_ += slab.bytes;
  slab_ends_.insert(slab.memory + slab.bytes);
  add_free(slab.memory, slab.bytes);
}

std::byte* PinnedPool::take_best_fit(Bytes bytes) {
  const auto found = free_by_size_.lower_bound(bytes);
  if (found == free_by_size_.end()) return nullptr;
  const auto [free_bytes, piece] = *found;
  remove_free(free_.find(piece));
  if (free_bytes > bytes) add_free(piece + bytes, free_bytes - bytes);
  return piece;
}

void PinnedPool::add_free(std::byte* piece, Bytes bytes) {
  free_.emplace(piece, bytes);
  free_by_size_.emplace(bytes, piece);
}

void PinnedPool::remove_free(Pieces::iterator piece) {
  const auto [first, last] = free_by_size_.equal_range(piece->second);
  free_by_size_.erase(
      std::find_if(first, last, [&](const auto& entry) { return entry.second == piece->first; }));
  free_.erase(piece);
}

}  // namespace offprof
