// Replaces io_uring_queue.cpp in a build without liburing.

#include "engine/storage/disk_queue.h"

namespace offprof {

bool has_io_uring_queue() noexcept {
  return false;
}

std::unique_ptr<DiskQueue> make_io_uring_queue(int /*requests*/, std::string& why_not) {
  why_not = "offprof was built without liburing";
  return nullptr;
}

}  // namespace offprof
