#include "tests/hazards/leftovers.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <string>

namespace offprof {
namespace {

std::size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// The kernel's own, which carry transfers out for io_uring, come and go as it likes.
bool is_of_kernel(const std::filesystem::directory_entry& task) {
  std::ifstream file(task.path() / "comm");
  std::string name;
  std::getline(file, name);
  return name.starts_with("iou-");
}

std::size_t threads_of_this_process() {
  std::size_t threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    threads += is_of_kernel(task) ? 0 : 1;
  return threads;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Leftovers& leftovers) {
  return out << leftovers.device_bytes << " bytes on the device, " << leftovers.host_bytes
             << " in host memory, " << leftovers.threads << " threads, " << leftovers.files << " files";
}

void settle_autograd(c10::Device device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kDouble);
  const at::Tensor leaf = at::empty({0}, options).set_requires_grad(true);
  leaf.clone().backward(at::empty({0}, options));
}

Leftovers leftovers_of(CountingDevice& device) {
  settle_autograd(device.torch_device());
  device.synchronize();
  return {device.live_bytes(), device.host_bytes(), threads_of_this_process(), entries_of("/proc/self/fd")};
}

}  // namespace offprof
