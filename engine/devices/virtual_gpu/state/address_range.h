#pragma once

#include "traces/base/units.h"

namespace offprof {

/// A piece of address space.
struct AddressRange {
  char* begin = nullptr;
  Bytes bytes = 0;

  bool operator==(const AddressRange&) const = default;
};

}  // namespace offprof
