#include "engine/devices/virtual_gpu/state/unsupported_calls.h"

#include <algorithm>
#include <functional>

namespace offprof {

void UnsupportedCalls::note_unwritten(const char* function) {
  std::function<void(const std::string&)> log;
  {
    const GpuLock lock(state_.mutex);
    if (std::find(unwritten_.begin(), unwritten_.end(), function) != unwritten_.end()) return;
    unwritten_.emplace_back(function);
    log = state_.options.log;
  }
  if (log) log(function);  // without the lock: it may call the GPU
}

void UnsupportedCalls::note_unknown_size(const char* what) {
  const GpuLock lock(state_.mutex);
  unknown_sizes_.insert(what);
}

void UnsupportedCalls::note_missing_device(int device) {
  const GpuLock lock(state_.mutex);
  missing_device_ = std::max(missing_device_.value_or(device), device);
}

std::optional<int> UnsupportedCalls::missing_device() const {
  const GpuLock lock(state_.mutex);
  return missing_device_;
}

std::vector<std::string> UnsupportedCalls::unwritten_calls() const {
  const GpuLock lock(state_.mutex);
  return unwritten_;
}

std::vector<std::string> UnsupportedCalls::take_unknown_sizes() {
  const GpuLock lock(state_.mutex);
  std::vector<std::string> taken(unknown_sizes_.begin(), unknown_sizes_.end());
  unknown_sizes_.clear();
  return taken;
}

}  // namespace offprof
