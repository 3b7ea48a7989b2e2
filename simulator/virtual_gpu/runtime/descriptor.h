#pragma once

namespace offprof::runtime {

/// A descriptor that is told things and never asked: any object will do.
inline int create_descriptor(void** descriptor) {
  *descriptor = new char;
  return 0;
}

inline int destroy_descriptor(void* descriptor) {
  delete static_cast<char*>(descriptor);
  return 0;
}

}  // namespace offprof::runtime
