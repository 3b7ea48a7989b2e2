#include "engine/devices/virtual_gpu/work/kernel_launch.h"

#include <cstddef>

namespace offprof {

// The name ends at its template arguments or its parameters, and begins after the last `::`.
std::string_view base_name(std::string_view demangled) {
  constexpr std::string_view kAnonymous = "(anonymous namespace)";
  std::size_t end = 0, begin = 0;
  while (end < demangled.size() && demangled[end] != '<') {
    if (demangled[end] == '(') {
      if (!demangled.substr(end).starts_with(kAnonymous)) break;
      end += kAnonymous.size();
      continue;
    }
    if (demangled[end] == ':' || demangled[end] == ' ') begin = end + 1;
    ++end;
  }
  return demangled.substr(begin, end - begin);
}

}  // namespace offprof
