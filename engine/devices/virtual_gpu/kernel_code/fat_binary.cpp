#include "engine/devices/virtual_gpu/kernel_code/fat_binary.h"

#include <cstddef>
#include <cstdint>
#include <cstring>

namespace offprof {
namespace {

struct Wrapper {
  static constexpr std::uint32_t kMagic = 0x466243B1;

  std::uint32_t magic, version;
  const std::byte* data;
  const void* linked_with;
};

/// Header before all entries.
struct BlobHeader {
  static constexpr std::uint32_t kMagic = 0xBA55ED50;

  std::uint32_t magic;
  std::uint16_t version, header_bytes;
  std::uint64_t entries_bytes;
};

/// Header before each entry's code.
struct EntryHeader {
  static constexpr std::uint16_t kPtx = 1, kMachineCode = 2;
  static constexpr std::uint64_t kForOneCard = 0x100000;

  std::uint16_t kind, version;
  std::uint32_t header_bytes;
  std::uint64_t code_bytes;
  std::uint32_t unused[3];
  std::uint32_t capability;
  std::uint32_t name_offset, name_bytes;
  std::uint64_t flags;
};

static_assert(sizeof(BlobHeader) == 16 && offsetof(EntryHeader, capability) == 28 &&
              offsetof(EntryHeader, flags) == 40);

template <typename Header>
Header read_header(const std::byte* at) {
  Header header{};
  std::memcpy(&header, at, sizeof header);
  return header;
}

bool is_known(const EntryHeader& entry, std::uint64_t left) {
  return (entry.kind == EntryHeader::kPtx || entry.kind == EntryHeader::kMachineCode) &&
         entry.header_bytes >= sizeof entry && entry.header_bytes <= left &&
         entry.code_bytes <= left - entry.header_bytes;
}

std::vector<GpuCode> codes_among(const std::byte* entries, std::uint64_t left) {
  std::vector<GpuCode> codes;
  while (left >= sizeof(EntryHeader)) {
    const auto entry = read_header<EntryHeader>(entries);
    if (!is_known(entry, left)) return {};
    codes.push_back({.capability = static_cast<int>(entry.capability),
                     .is_ptx = entry.kind == EntryHeader::kPtx,
                     .is_for_one_card = (entry.flags & EntryHeader::kForOneCard) != 0});
    entries += entry.header_bytes + entry.code_bytes;
    left -= entry.header_bytes + entry.code_bytes;
  }
  return codes;
}

bool runs_on(const GpuCode& code, int capability) {
  if (code.is_for_one_card) return code.capability == capability;
  return code.capability <= capability && (code.is_ptx || code.capability / 10 == capability / 10);
}

/// Orders machine code before PTX, and newer code before older.
bool is_better(const GpuCode& a, const GpuCode& b) {
  return a.is_ptx != b.is_ptx ? b.is_ptx : a.capability > b.capability;
}

}  // namespace

std::vector<GpuCode> codes_in(const void* wrapper) {
  if (wrapper == nullptr) return {};
  const auto outer = read_header<Wrapper>(static_cast<const std::byte*>(wrapper));
  if (outer.magic != Wrapper::kMagic || outer.data == nullptr) return {};
  const auto blob = read_header<BlobHeader>(outer.data);
  if (blob.magic != BlobHeader::kMagic || blob.header_bytes < sizeof blob) return {};
  return codes_among(outer.data + blob.header_bytes, blob.entries_bytes);
}

std::optional<GpuCode> best_code(const std::vector<GpuCode>& codes, int capability) {
  std::optional<GpuCode> best;
  for (const GpuCode& code : codes)
    if (runs_on(code, capability) && (!best || is_better(code, *best))) best = code;
  return best;
}

}  // namespace offprof
