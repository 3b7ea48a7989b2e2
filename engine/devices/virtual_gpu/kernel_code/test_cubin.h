#pragma once

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <string>
#include <vector>

namespace offprof {

/// A cubin for tests: an ELF file with the sections that kernel_parameters reads, and no code.
class TestCubin {
 public:
  /// Address spaces of a parameter that is, or is not, declared as a pointer to global memory.
  static constexpr std::uint32_t kPlain = 0, kGlobal = 4;

  /// Begins the attributes of a kernel with one that has no parameter, and one without a sized value.
  void add_kernel(const std::string& name) {
    kernels_.push_back({name, {}});
    add_attribute(0x37, std::string(4, '\0'));
    kernels_.back().attributes += std::string("\x02\x4c\x01\x00", 4);
  }

  /// Adds a parameter of the last kernel.
  void add_parameter(std::uint16_t ordinal, std::uint32_t bytes, std::uint32_t space) {
    std::string value(12, '\0');
    const std::uint32_t flags = bytes << 18U | 0x1fU << 12U | space << 8U;
    std::memcpy(value.data() + 4, &ordinal, sizeof ordinal);
    std::memcpy(value.data() + 8, &flags, sizeof flags);
    add_attribute(0x17, value);
  }

  /// Returns the bytes of the file.
  std::string image() const {
    std::string names(1, '\0'), contents;
    std::vector<Elf64_Shdr> sections(1);
    const auto add = [&](const std::string& name, const std::string& content) {
      Elf64_Shdr section{};
      section.sh_name = static_cast<Elf64_Word>(names.size());
      section.sh_type = SHT_PROGBITS;
      section.sh_offset = sizeof(Elf64_Ehdr) + contents.size();
      section.sh_size = content.size();
      names += name + '\0';
      contents += content;
      sections.push_back(section);
    };
    for (const Kernel& kernel : kernels_) add(".nv.info." + kernel.name, kernel.attributes);
    const std::string all_names = names + ".shstrtab" + '\0';
    add(".shstrtab", all_names);
    Elf64_Ehdr header{};
    std::memcpy(header.e_ident, ELFMAG, SELFMAG);
    header.e_ident[EI_CLASS] = ELFCLASS64;
    header.e_machine = EM_CUDA;
    header.e_shoff = sizeof header + contents.size();
    header.e_shentsize = sizeof(Elf64_Shdr);
    header.e_shnum = static_cast<Elf64_Half>(sections.size());
    header.e_shstrndx = static_cast<Elf64_Half>(sections.size() - 1);
    return bytes_of(&header, sizeof header) + contents +
           bytes_of(sections.data(), sections.size() * sizeof(Elf64_Shdr));
  }

 private:
  struct Kernel {
    std::string name, attributes;
  };

  static std::string bytes_of(const void* begin, std::size_t bytes) {
    return {static_cast<const char*>(begin), bytes};
  }

  void add_attribute(char kind, const std::string& value) {
    const std::string head = {'\x04', kind, static_cast<char>(value.size()), '\0'};
    kernels_.back().attributes += head + value;
  }

  std::vector<Kernel> kernels_;
};

}  // namespace offprof
