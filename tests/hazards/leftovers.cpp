#include "tests/hazards/leftovers.h"

#include <ATen/ATen.h>

#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

namespace offprof {
namespace {

std::size_t entries_of(const char* folder) {
  const std::filesystem::directory_iterator entries(folder);
  return static_cast<std::size_t>(std::distance(begin(entries), end(entries)));
}

/// Whether it is a thread of the program's, and runs. One that has been joined is listed for a moment longer;
/// and the kernel's own, which carry transfers out for io_uring, come and go as it likes.
bool is_thread_of_ours(const std::filesystem::path& task) {
  constexpr unsigned long kExiting = 0x4, kCarriesTransfersOut = 0x10;  // PF_EXITING, PF_IO_WORKER
  std::ifstream file(task / "stat");
  std::string line, field;
  if (!std::getline(file, line)) return false;  // gone since it was listed
  // After the name, which may hold spaces and brackets: state, parent, group, session, terminal and its
  // group.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  for (int i = 0; i < 6; ++i) fields >> field;
  unsigned long flags = 0;
  fields >> flags;
  return (flags & (kExiting | kCarriesTransfersOut)) == 0;
}

std::size_t threads_of_this_process() {
  std::size_t threads = 0;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    threads += is_thread_of_ours(task.path()) ? 1 : 0;
  return threads;
}

}  // namespace

std::ostream& operator<<(std::ostream& out, const Leftovers& leftovers) {
  return out << leftovers.device_bytes << " bytes on the device, " << leftovers.host_bytes
             << " in host memory, " << leftovers.disk_bytes << " on the disk, " << leftovers.threads
             << " threads, " << leftovers.files << " files";
}

void settle_autograd(c10::Device device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kDouble);
  const at::Tensor leaf = at::empty({0}, options).set_requires_grad(true);
  leaf.clone().backward(at::empty({0}, options));
}

Leftovers leftovers_of(CountingDevice& device) {
  settle_autograd(device.torch_device());
  device.synchronize();
  return {device.live_bytes(), device.host_bytes(), device.disk_bytes(), threads_of_this_process(),
          entries_of("/proc/self/fd")};
}

}  // namespace offprof
