#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <string_view>
#include <unordered_map>

namespace offprof {

/// The kernels that modules have registered, and how often each was launched.
class KernelTable {
 public:
  /// LibTorch registers tens of thousands: the name is not copied, and demangled only when it is launched.
  void add(const void* host_stub, const char* mangled_name) { mangled_names_[host_stub] = mangled_name; }

  /// Demangled; `unknown kernel` where nobody has registered it. Valid as long as the table.
  std::string_view name(const void* host_stub);

  void count_launch(std::string_view name);
  std::int64_t launches() const { return launches_; }
  std::map<std::string, std::int64_t> launches_by_name() const;
  void restart_counts();

 private:
  std::unordered_map<const void*, const char*> mangled_names_;
  std::unordered_map<const void*, std::string> names_;
  std::map<std::string, std::int64_t, std::less<>> launches_by_name_;
  std::int64_t launches_ = 0;
};

}  // namespace offprof
