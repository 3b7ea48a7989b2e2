#pragma once

namespace offprof::runtime {

/// Creates a descriptor whose values are set but never read; any object will do.
inline int create_descriptor(void** descriptor) {
  *descriptor = new char;
  return 0;
}

inline int destroy_descriptor(void* descriptor) {
  delete static_cast<char*>(descriptor);
  return 0;
}

}  // namespace offprof::runtime
