#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "engine/devices/virtual_gpu/kernel_code/fat_binary.h"

namespace offprof {

/// The modules of loaded libraries, their registered kernels, and the number of launches of each kernel.
class KernelTable {
 public:
  /// Adds a module. `fat_binary` is the wrapper that codes_in takes, and must stay at its address. It is read
  /// only when a code is requested, since the headers of LibTorch alone are spread over thousands of pages.
  void add_module(const void* fat_binary) { modules_.try_emplace(fat_binary); }
  /// Adds a kernel. `module` is its fat binary, or any other handle. LibTorch registers tens of thousands of
  /// kernels, so the name is not copied, and is demangled only at a launch.
  void add(const void* host_stub, const char* mangled_name, const void* module) {
    kernels_[host_stub] = {mangled_name, module};
  }

  /// Returns the kernel's code that a card of that compute capability (10 * major + minor) runs; nullopt:
  /// there is none. If nothing is known about the kernel's module, it counts as having code for every card.
  std::optional<GpuCode> code(const void* host_stub, int capability);
  /// Returns true if some module can run on a card of that capability, or may be able to.
  bool has_code_for(int capability);
  /// Returns the capabilities that the modules hold code for.
  std::set<int> capabilities();

  /// Returns the demangled name, or `unknown kernel` if the kernel is not registered. Valid as long as the
  /// table.
  std::string_view name(const void* host_stub);
  /// Returns the mangled name as it was registered; nullptr if the kernel is not registered.
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
