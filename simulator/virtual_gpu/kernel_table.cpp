#include "simulator/virtual_gpu/kernel_table.h"

#include <cxxabi.h>

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
  const auto mangled = mangled_names_.find(host_stub);
  const std::string text = mangled == mangled_names_.end() ? "unknown kernel" : demangled(mangled->second);
  return names_.emplace(host_stub, text).first->second;
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
