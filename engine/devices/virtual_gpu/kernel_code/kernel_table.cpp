#include "engine/devices/virtual_gpu/kernel_code/kernel_table.h"

#include <cxxabi.h>

#include <algorithm>
#include <cstdlib>
#include <memory>

namespace offprof {
namespace {

std::string demangled(const char* name) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(abi::__cxa_demangle(name, nullptr, nullptr, &status),
                                                         &std::free);
  return status == 0 ? text.get() : name;
}

}  // namespace

std::string_view KernelTable::name(const void* host_stub) {
  const auto known = names_.find(host_stub);
  if (known != names_.end()) return known->second;
  const auto kernel = kernels_.find(host_stub);
  const std::string text =
      kernel == kernels_.end() ? "unknown kernel" : demangled(kernel->second.mangled_name);
  return names_.emplace(host_stub, text).first->second;
}

const char* KernelTable::mangled_name(const void* host_stub) const {
  const auto kernel = kernels_.find(host_stub);
  return kernel == kernels_.end() ? nullptr : kernel->second.mangled_name;
}

const std::vector<GpuCode>& KernelTable::read(const void* fat_binary, Codes& codes) {
  if (!codes) codes = codes_in(fat_binary);
  return *codes;
}

std::optional<GpuCode> KernelTable::code(const void* host_stub, int capability) {
  const auto kernel = kernels_.find(host_stub);
  const auto module = kernel == kernels_.end() ? modules_.end() : modules_.find(kernel->second.module);
  if (module == modules_.end()) return GpuCode{capability};
  const std::vector<GpuCode>& codes = read(module->first, module->second);
  return codes.empty() ? GpuCode{capability} : best_code(codes, capability);
}

bool KernelTable::has_code_for(int capability) {
  return modules_.empty() || std::ranges::any_of(modules_, [&](auto& module) {
           const std::vector<GpuCode>& codes = read(module.first, module.second);
           return codes.empty() || best_code(codes, capability);
         });
}

std::set<int> KernelTable::capabilities() {
  std::set<int> capabilities;
  for (auto& [fat_binary, codes] : modules_)
    for (const GpuCode& code : read(fat_binary, codes)) capabilities.insert(code.capability);
  return capabilities;
}

void KernelTable::count_launch(std::string_view name) {
  ++launches_;
  const auto counted = launches_by_name_.find(name);
  if (counted != launches_by_name_.end()) {
    ++counted->second;
  } else {
    launches_by_name_.emplace(name, 1);
  }
}

std::map<std::string, std::int64_t> KernelTable::launches_by_name() const {
  return {launches_by_name_.begin(), launches_by_name_.end()};
}

void KernelTable::restart_counts() {
  launches_ = 0;
  launches_by_name_.clear();
}

}  // namespace offprof
