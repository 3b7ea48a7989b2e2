#include "engine/devices/virtual_gpu/state/address_space.h"

#include <sys/mman.h>

#include <cerrno>
#include <cstring>
#include <iterator>

#include "traces/base/check.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

// Half of the address space of a process on x86-64, 400 times the memory of the largest current GPU. The
// thread sanitizer leaves less.
constexpr Bytes kArenaBytes = Bytes{64} * 1024 * kGiB, kLeastArenaBytes = 256 * kGiB;

constexpr Bytes rounded_up(Bytes bytes) {
  return round_up(bytes, AddressSpace::kGranule);
}

bool is_granular(Bytes bytes) {
  return bytes > 0 && bytes % AddressSpace::kGranule == 0;
}

// Returns the last entry of `ranges` that begins at or below `address`, or end().
template <typename Ranges>
auto range_below(Ranges& ranges, const void* address) {
  auto above = ranges.upper_bound(static_cast<char*>(const_cast<void*>(address)));
  return above == ranges.begin() ? ranges.end() : std::prev(above);
}

std::optional<AddressRange> range_around(const std::map<char*, Bytes>& ranges, const void* address) {
  const auto found = range_below(ranges, address);
  if (found == ranges.end() || address >= found->first + found->second) return std::nullopt;
  return AddressRange{found->first, found->second};
}

}  // namespace

AddressSpace::AddressSpace() {
  void* arena = MAP_FAILED;
  for (arena_bytes_ = 2 * kArenaBytes; arena == MAP_FAILED && arena_bytes_ > kLeastArenaBytes;) {
    arena_bytes_ /= 2;
    arena = mmap(nullptr, arena_bytes_, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, /*fd=*/-1,
                 /*offset=*/0);
  }
  if (arena == MAP_FAILED) {
    throw environment_error(
        std::string("cannot reserve address space for the virtual GPU's memory: ") + std::strerror(errno),
        "remove the limit on virtual memory: ulimit -v unlimited");
  }
  arena_ = static_cast<char*>(arena);
  char* const end = arena_ + arena_bytes_;
  lowest_ = end - reinterpret_cast<std::uintptr_t>(end) % kGranule;
}

AddressSpace::~AddressSpace() {
  munmap(arena_, arena_bytes_);
}

void AddressSpace::set_real(bool is_real) {
  is_real_ = is_real;
  for (const auto& [begin, bytes] : allocations_) back({begin, bytes});
  for (const auto& [begin, bytes] : variables_) back({begin, rounded_up(bytes)});
  for (const auto& [begin, mapping] : mappings_) back({begin, mapping.bytes});
}

void* AddressSpace::allocate(Bytes bytes) {
  bytes = rounded_up(bytes);
  if (bytes <= 0 || bytes > limit_bytes_ - used_bytes_) return nullptr;
  char* begin = take_addresses(bytes);
  if (begin == nullptr) return nullptr;
  used_bytes_ += bytes;
  allocations_.emplace(begin, bytes);
  back({begin, bytes});
  return begin;
}

std::optional<AddressRange> AddressSpace::free(void* address) {
  const auto found = allocations_.find(static_cast<char*>(address));
  if (found == allocations_.end()) return std::nullopt;
  const AddressRange range{found->first, found->second};
  used_bytes_ -= range.bytes;
  allocations_.erase(found);
  unback(range);
  return range;
}

void* AddressSpace::place_variable(Bytes bytes) {
  char* begin = take_addresses(rounded_up(bytes));
  if (begin == nullptr) return nullptr;
  variables_.emplace(begin, bytes);
  back({begin, rounded_up(bytes)});
  return begin;
}

void* AddressSpace::reserve(Bytes bytes) {
  if (!is_granular(bytes)) return nullptr;
  char* begin = take_addresses(bytes);
  if (begin != nullptr) reservations_.emplace(begin, bytes);
  return begin;
}

bool AddressSpace::release_reservation(void* address, Bytes bytes) {
  const auto found = reservations_.find(static_cast<char*>(address));
  if (found == reservations_.end() || found->second != bytes) return false;
  if (overlaps_mapping(found->first, bytes)) return false;
  reservations_.erase(found);
  return true;
}

std::optional<AddressSpace::Handle> AddressSpace::create(Bytes bytes) {
  if (!is_granular(bytes) || bytes > limit_bytes_ - used_bytes_) return std::nullopt;
  used_bytes_ += bytes;
  physical_.emplace(next_handle_, Physical{.bytes = bytes, .references = 1});
  return next_handle_++;
}

bool AddressSpace::release(Handle handle) {
  if (!physical_.contains(handle)) return false;
  drop_reference(handle);
  return true;
}

std::optional<AddressSpace::Handle> AddressSpace::retain(const void* address) {
  const auto mapped = find_mapping(address);
  if (!mapped) return std::nullopt;
  const Handle handle = mappings_.at(mapped->begin).handle;
  ++physical_.at(handle).references;
  return handle;
}

bool AddressSpace::map(void* address, Bytes bytes, Handle handle) {
  auto* begin = static_cast<char*>(address);
  const auto physical = physical_.find(handle);
  if (physical == physical_.end() || physical->second.bytes != bytes) return false;
  if (!in_reservation(begin, bytes) || overlaps_mapping(begin, bytes)) return false;
  ++physical->second.references;
  mappings_.emplace(begin, Mapping{.bytes = bytes, .handle = handle});
  back({begin, bytes});
  return true;
}

bool AddressSpace::unmap(void* address, Bytes bytes) {
  auto* begin = static_cast<char*>(address);
  const auto first = mappings_.find(begin);
  if (first == mappings_.end() || !is_mapped(address, bytes)) return false;
  const auto last = mappings_.lower_bound(begin + bytes);
  if (std::prev(last)->first + std::prev(last)->second.bytes != begin + bytes) return false;
  for (auto mapping = first; mapping != last; ++mapping) {
    unback({mapping->first, mapping->second.bytes});
    drop_reference(mapping->second.handle);
  }
  mappings_.erase(first, last);
  return true;
}

bool AddressSpace::is_mapped(const void* address, Bytes bytes) const {
  const auto* at = static_cast<const char*>(address);
  const char* end = at + bytes;
  for (auto mapping = range_below(mappings_, at); mapping != mappings_.end() && mapping->first <= at;
       ++mapping) {
    const char* mapping_end = mapping->first + mapping->second.bytes;
    if (mapping_end <= at) return false;
    if (mapping_end >= end) return true;
    at = mapping_end;
  }
  return false;
}

std::optional<AddressRange> AddressSpace::find(const void* address) const {
  if (const auto found = range_around(allocations_, address)) return found;
  if (const auto found = range_around(variables_, address)) return found;
  return find_mapping(address);
}

std::optional<AddressRange> AddressSpace::find_mapping(const void* address) const {
  const auto found = range_below(mappings_, address);
  if (found == mappings_.end() || address >= found->first + found->second.bytes) return std::nullopt;
  return AddressRange{found->first, found->second.bytes};
}

char* AddressSpace::take_addresses(Bytes bytes) {
  if (bytes > lowest_ - arena_) return nullptr;
  return lowest_ -= bytes;
}

void AddressSpace::back(AddressRange range) const {
  if (!is_real_) return;
  OFFPROF_CHECK(mprotect(range.begin, range.bytes, PROT_READ | PROT_WRITE) == 0);
}

void AddressSpace::unback(AddressRange range) const {
  if (!is_real_) return;
  OFFPROF_CHECK(madvise(range.begin, range.bytes, MADV_DONTNEED) == 0);
  OFFPROF_CHECK(mprotect(range.begin, range.bytes, PROT_NONE) == 0);
}

void AddressSpace::drop_reference(Handle handle) {
  const auto found = physical_.find(handle);
  if (--found->second.references > 0) return;
  used_bytes_ -= found->second.bytes;
  physical_.erase(found);
}

bool AddressSpace::in_reservation(const char* address, Bytes bytes) const {
  const auto found = range_below(reservations_, address);
  return found != reservations_.end() && address + bytes <= found->first + found->second;
}

bool AddressSpace::overlaps_mapping(const char* address, Bytes bytes) const {
  const auto found = range_below(mappings_, address + bytes - 1);
  return found != mappings_.end() && found->first + found->second.bytes > address;
}

}  // namespace offprof
