#include "tests/hazards/leftovers.h"

#include <ATen/ATen.h>

#include <algorithm>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <sstream>
#include <system_error>
#include <thread>
#include <utility>

namespace offprof {
namespace {

using Clock = std::chrono::steady_clock;

constexpr std::chrono::milliseconds kBetweenLooks(1);

/// NVIDIA's driver opens its devices and event descriptors again when it needs more of them.
bool is_of_driver(const std::string& path, const CountingDevice& device) {
  if (device.is_virtual() || !device.torch_device().is_cuda()) return false;
  return path.starts_with("/dev/nvidia") || path == "anon_inode:[eventfd]";
}

std::vector<std::string> files_of_this_process(const CountingDevice& device) {
  std::vector<std::string> files;
  for (const auto& descriptor : std::filesystem::directory_iterator("/proc/self/fd")) {
    std::error_code was_closed;
    std::string path = std::filesystem::read_symlink(descriptor.path(), was_closed).string();
    if (!was_closed && !is_of_driver(path, device)) files.push_back(std::move(path));
  }
  std::ranges::sort(files);
  return files;
}

/// True if the task is a running thread of this process. A thread that has been joined is listed a moment
/// longer. The kernel's own threads, which carry out transfers for io_uring, come and go.
bool is_thread_of_ours(const std::filesystem::path& task) {
  constexpr unsigned long kExiting = 0x4, kCarriesTransfersOut = 0x10;  // PF_EXITING, PF_IO_WORKER
  std::ifstream file(task / "stat");
  std::string line, field;
  if (!std::getline(file, line)) return false;  // it ended after it was listed
  // Skip the fields after the name, which may contain spaces and brackets: state, parent, group, session,
  // terminal and the terminal's group.
  std::istringstream fields(line.substr(line.rfind(')') + 1));
  for (int i = 0; i < 6; ++i) fields >> field;
  unsigned long flags = 0;
  fields >> flags;
  return (flags & (kExiting | kCarriesTransfersOut)) == 0;
}

std::set<pid_t> threads_of_this_process() {
  std::set<pid_t> threads;
  for (const auto& task : std::filesystem::directory_iterator("/proc/self/task"))
    if (is_thread_of_ours(task.path())) threads.insert(std::stoi(task.path().filename()));
  return threads;
}

std::string byte_differences(const Leftovers& before, const Leftovers& now) {
  std::string text;
  const auto compare = [&](const char* where, Bytes then, Bytes bytes) {
    if (then != bytes)
      text += std::to_string(bytes) + " bytes " + where + " where " + std::to_string(then) + " were; ";
  };
  compare("on the device", before.device_bytes, now.device_bytes);
  compare("in host memory", before.host_bytes, now.host_bytes);
  compare("on the disk", before.disk_bytes, now.disk_bytes);
  return text;
}

std::string additions(const Leftovers& before, const Leftovers& now) {
  std::string text;
  const auto added =
      std::ranges::count_if(now.threads, [&](pid_t id) { return !before.threads.contains(id); });
  if (added > 0) text += std::to_string(added) + " threads more; ";
  if (now.files.size() <= before.files.size()) return text;
  text += std::to_string(now.files.size()) + " open files where " + std::to_string(before.files.size()) +
          " were:";
  std::vector<std::string> opened;
  std::ranges::set_difference(now.files, before.files, std::back_inserter(opened));
  for (const std::string& path : opened) text += " " + path;
  return text + "; ";
}

}  // namespace

void settle_autograd(c10::Device device) {
  const at::TensorOptions options = at::TensorOptions(device).dtype(at::kDouble);
  const at::Tensor leaf = at::empty({0}, options).set_requires_grad(true);
  leaf.clone().backward(at::empty({0}, options));
}

Leftovers leftovers_of(CountingDevice& device) {
  settle_autograd(device.torch_device());
  device.synchronize();
  return {device.live_bytes(), device.host_bytes(), device.disk_bytes(), threads_of_this_process(),
          files_of_this_process(device)};
}

std::string left_since(const Leftovers& before, CountingDevice& device, std::chrono::milliseconds patience) {
  Leftovers now = leftovers_of(device);
  const std::string bytes = byte_differences(before, now);
  const auto end = Clock::now() + patience;
  while (!additions(before, now).empty() && Clock::now() < end) {
    std::this_thread::sleep_for(kBetweenLooks);
    now.threads = threads_of_this_process();
    now.files = files_of_this_process(device);
  }
  return bytes + additions(before, now);
}

}  // namespace offprof
