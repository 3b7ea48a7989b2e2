#include "engine/devices/virtual_gpu/state/pinned_memory.h"

#include <sys/mman.h>
#include <unistd.h>

#include <iterator>

namespace offprof {
namespace {

Bytes rounded_to_pages(Bytes bytes) {
  static const Bytes page = sysconf(_SC_PAGESIZE);
  return (bytes + page - 1) / page * page;
}

}  // namespace

PinnedMemory::~PinnedMemory() {
  for (const auto& [begin, piece] : pieces_) {
    if (piece.mapped_bytes > 0) munmap(begin, piece.mapped_bytes);
  }
}

void* PinnedMemory::allocate(Bytes bytes) {
  if (bytes <= 0) return nullptr;
  const Bytes mapped = rounded_to_pages(bytes);
  void* begin = mmap(nullptr, mapped, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE,
                     /*fd=*/-1, /*offset=*/0);
  if (begin == MAP_FAILED) return nullptr;
  pieces_.emplace(static_cast<char*>(begin), Piece{.bytes = bytes, .mapped_bytes = mapped});
  pinned_bytes_ += bytes;
  return begin;
}

std::optional<AddressRange> PinnedMemory::free(void* address) {
  const auto found = pieces_.find(static_cast<char*>(address));
  if (found == pieces_.end() || found->second.mapped_bytes == 0) return std::nullopt;
  const AddressRange range{found->first, found->second.bytes};
  munmap(found->first, found->second.mapped_bytes);
  pieces_.erase(found);
  pinned_bytes_ -= range.bytes;
  return range;
}

bool PinnedMemory::register_range(void* address, Bytes bytes) {
  auto* begin = static_cast<char*>(address);
  const auto above = pieces_.lower_bound(begin + bytes);
  if (above != pieces_.begin()) {
    const auto& [below_begin, below] = *std::prev(above);
    if (below_begin + below.bytes > begin) return false;
  }
  pieces_.emplace(begin, Piece{.bytes = bytes, .mapped_bytes = 0});
  pinned_bytes_ += bytes;
  return true;
}

std::optional<AddressRange> PinnedMemory::unregister(void* address) {
  const auto found = pieces_.find(static_cast<char*>(address));
  if (found == pieces_.end() || found->second.mapped_bytes > 0) return std::nullopt;
  const AddressRange range{found->first, found->second.bytes};
  pieces_.erase(found);
  pinned_bytes_ -= range.bytes;
  return range;
}

std::optional<AddressRange> PinnedMemory::find(const void* address) const {
  const auto above = pieces_.upper_bound(static_cast<char*>(const_cast<void*>(address)));
  if (above == pieces_.begin()) return std::nullopt;
  const auto& [begin, piece] = *std::prev(above);
  if (address >= begin + piece.bytes) return std::nullopt;
  return AddressRange{begin, piece.bytes};
}

}  // namespace offprof
