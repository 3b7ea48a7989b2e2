#include "engine/devices/virtual_gpu/kernel_code/cubin.h"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>
#include <string_view>

namespace offprof {
namespace {

using Image = std::span<const std::byte>;

constexpr std::string_view kInfoPrefix = ".nv.info.";

/// Attribute of a kernel. Those with a sized value are followed by so many bytes; others take 4 bytes.
struct Attribute {
  static constexpr std::uint8_t kSized = 4;       ///< EIFMT_SVAL
  static constexpr std::uint8_t kParameter = 23;  ///< EIATTR_KPARAM_INFO

  std::uint8_t format, kind;
  std::uint16_t bytes;
};

/// Value of EIATTR_KPARAM_INFO.
struct ParameterInfo {
  static constexpr std::uint32_t kGlobal = 4;  ///< address space

  std::uint32_t index;
  std::uint16_t ordinal, offset;
  std::uint32_t flags;  ///< from the lowest bit: 8 alignment, 4 space, 6 constant bank, 14 size

  std::uint32_t space() const { return (flags >> 8U) & 0xFU; }
  std::uint32_t size() const { return flags >> 18U; }
};

static_assert(sizeof(Attribute) == 4 && sizeof(ParameterInfo) == 12);

template <typename Value>
std::optional<Value> read(Image image, std::uint64_t offset) {
  if (offset > image.size() || sizeof(Value) > image.size() - offset) return std::nullopt;
  Value value{};
  std::memcpy(&value, image.data() + offset, sizeof value);
  return value;
}

bool is_cubin(const Elf64_Ehdr& header) {
  return std::memcmp(header.e_ident, ELFMAG, SELFMAG) == 0 && header.e_ident[EI_CLASS] == ELFCLASS64 &&
         header.e_machine == EM_CUDA && header.e_shentsize == sizeof(Elf64_Shdr);
}

Image content_of(Image image, const Elf64_Shdr& section) {
  if (section.sh_type == SHT_NOBITS || section.sh_offset > image.size() ||
      section.sh_size > image.size() - section.sh_offset)
    return {};
  return image.subspan(section.sh_offset, section.sh_size);
}

std::string_view text_at(Image strings, std::uint64_t offset) {
  if (offset >= strings.size()) return {};
  const auto* const begin = reinterpret_cast<const char*>(strings.data()) + offset;
  return {begin, strnlen(begin, strings.size() - offset)};
}

/// Returns the parameters that the attributes list; nullopt if there are none, or some are missing.
std::optional<std::vector<KernelParameter>> parameters_among(Image attributes) {
  std::map<std::uint16_t, KernelParameter> by_ordinal;
  std::uint64_t at = 0;
  while (const auto attribute = read<Attribute>(attributes, at)) {
    at += sizeof *attribute;
    if (attribute->format != Attribute::kSized) continue;
    if (attribute->kind == Attribute::kParameter) {
      const auto info = read<ParameterInfo>(attributes, at);
      if (!info || attribute->bytes != sizeof *info) return std::nullopt;
      by_ordinal[info->ordinal] = {info->size(), info->space() == ParameterInfo::kGlobal};
    }
    at += attribute->bytes;
  }
  if (by_ordinal.empty() || by_ordinal.rbegin()->first + 1U != by_ordinal.size()) return std::nullopt;
  std::vector<KernelParameter> parameters;
  for (const auto& [ordinal, parameter] : by_ordinal) parameters.push_back(parameter);
  return parameters;
}

}  // namespace

KernelParameters kernel_parameters(std::span<const std::byte> image) {
  const auto header = read<Elf64_Ehdr>(image, 0);
  if (!header || !is_cubin(*header)) return {};
  const auto section = [&](std::uint64_t number) {
    return read<Elf64_Shdr>(image, header->e_shoff + number * sizeof(Elf64_Shdr)).value_or(Elf64_Shdr{});
  };
  const Image names = content_of(image, section(header->e_shstrndx));
  KernelParameters found;
  for (std::uint64_t i = 0; i < header->e_shnum; ++i) {
    const Elf64_Shdr each = section(i);
    const std::string_view name = text_at(names, each.sh_name);
    if (!name.starts_with(kInfoPrefix)) continue;
    if (auto parameters = parameters_among(content_of(image, each)))
      found.emplace(name.substr(kInfoPrefix.size()), std::move(*parameters));
  }
  return found;
}

KernelParameters kernel_parameters_at(const void* image) {
  if (image == nullptr || std::memcmp(image, ELFMAG, SELFMAG) != 0) return {};
  Elf64_Ehdr header;
  std::memcpy(&header, image, sizeof header);
  if (!is_cubin(header)) return {};
  const auto* const begin = static_cast<const std::byte*>(image);
  std::uint64_t bytes = header.e_shoff + std::uint64_t{header.e_shnum} * sizeof(Elf64_Shdr);
  const Image sections(begin + header.e_shoff, bytes - header.e_shoff);
  for (std::uint64_t i = 0; i < header.e_shnum; ++i) {
    const Elf64_Shdr each = *read<Elf64_Shdr>(sections, i * sizeof(Elf64_Shdr));
    if (each.sh_type != SHT_NOBITS) bytes = std::max(bytes, each.sh_offset + each.sh_size);
  }
  return kernel_parameters({begin, bytes});
}

}  // namespace offprof
