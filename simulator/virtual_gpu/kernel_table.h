#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "simulator/virtual_gpu/fat_binary.h"

namespace offprof {

/// The modules of loaded libraries, the kernels that they have registered, and how often each was launched.
class KernelTable {
 public:
  /// `fat_binary`: the wrapper of codes_in, which must stay where it is. It is read when it is asked for,
  /// since LibTorch's headers alone lie on thousands of pages.
  void add_module(const void* fat_binary) { modules_.try_emplace(fat_binary); }
  /// `module`: its fat binary, or any other handle. LibTorch registers tens of thousands of kernels: the name
  /// is not copied, and demangled only when it is launched.
  void add(const void* host_stub, const char* mangled_name, const void* module) {
    kernels_[host_stub] = {mangled_name, module};
  }

  /// What a card of that compute capability (10 * major + minor) runs of the kernel: nullopt for no code. A
  /// kernel of which nothing can be told has code for every card.
  std::optional<GpuCode> code(const void* host_stub, int capability);
  /// Whether any module can be run on it, or is not known to be unfit.
  bool has_code_for(int capability);
  /// The capabilities that modules hold code for.
  std::set<int> capabilities();

  /// Demangled; `unknown kernel` where nobody has registered it. Valid as long as the table.
  std::string_view name(const void* host_stub);
  /// Mangled, as it was registered; nullptr: nobody has.
  const char* mangled_name(const void* host_stub) const;

  void count_launch(std::string_view name);
  std::int64_t launches() const { return launches_; }
  std::map<std::string, std::int64_t> launches_by_name() const;
  void restart_counts();

 private:
  struct Kernel {
    const char* mangled_name = nullptr;
    const void* module = nullptr;
  };
  using Codes = std::optional<std::vector<GpuCode>>;  ///< nullopt: not read yet

  static const std::vector<GpuCode>& read(const void* fat_binary, Codes& codes);

  std::unordered_map<const void*, Codes> modules_;
  std::unordered_map<const void*, Kernel> kernels_;
  std::unordered_map<const void*, std::string> names_;
  std::map<std::string, std::int64_t, std::less<>> launches_by_name_;
  std::int64_t launches_ = 0;
};

}  // namespace offprof
