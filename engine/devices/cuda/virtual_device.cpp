#include "engine/devices/cuda/virtual_device.h"

#include <c10/cuda/CUDAFunctions.h>

#include <limits>
#include <memory>
#include <set>

#include "engine/devices/cuda/modelled_device_disk.h"
#include "engine/devices/virtual_gpu/value_reads.h"
#include "traces/base/error.h"

namespace offprof {
namespace {

std::string note_of(const LaunchTimes& launches) {
  const std::int64_t recorded = launches.by_op + launches.by_kernel;
  const std::string all = std::to_string(recorded + launches.estimated) + " launches";
  if (recorded == 0) return "kernel times: no recorded time matches this run; all " + all + " are estimated";
  return "kernel times: " + std::to_string(recorded) + " of " + all + " recorded (" +
         std::to_string(launches.by_op) + " by operator, " + std::to_string(launches.by_kernel) +
         " by kernel), the rest estimated";
}

}  // namespace

VirtualDevice::VirtualDevice(VirtualGpu& gpu)
    : CudaDevice(c10::cuda::current_device()), gpu_(gpu), ops_(gpu) {
  books().set_watcher(&gpu);
  VirtualDevice::set_capacity(std::nullopt);
}

VirtualDevice::~VirtualDevice() {
  books().set_watcher(nullptr);
}

void VirtualDevice::set_capacity(std::optional<Bytes> bytes) {
  set_books_capacity(bytes);
  gpu_.set_memory_limit(bytes.value_or(std::numeric_limits<Bytes>::max()));
}

std::optional<Bytes> VirtualDevice::used_beside_allocator() const {
  return gpu_.context_bytes();
}

std::byte* VirtualDevice::allocate_host(Bytes bytes) {
  std::byte* buffer = CudaDevice::allocate_host(bytes);
  gpu_.host_block_allocated(buffer, bytes);
  return buffer;
}

void VirtualDevice::free_host(std::byte* buffer, Bytes bytes) {
  gpu_.host_block_freed(buffer);
  CudaDevice::free_host(buffer, bytes);
}

Device::Event VirtualDevice::copy(CopyQueue queue, const CopyRequest& request) {
  const Event event = CudaDevice::copy(queue, request);
  if (KnownValues* const values = ops_.values()) {
    if (request.direction == CopyDirection::kD2h) values->copied_out(request.to, request.from);
    if (request.direction == CopyDirection::kH2d) values->copied_back(request.to, request.from);
  }
  return event;
}

Device::Event VirtualDevice::copy_out_densely(CopyQueue queue, const at::Tensor& from, std::byte* to,
                                              std::int64_t tag) {
  gpu_.take_side_work();
  const Event event = CudaDevice::copy_out_densely(queue, from, to, tag);
  // The staging is one kernel, or one copy within the device. After it the host has launched the copy over
  // the link.
  Work staging = gpu_.take_side_work();
  staging.host_ns -= gpu_.link().launch_ns;
  staging.path_ns = staging.host_ns + staging.stream_ns;
  note_staging(queue, staging);
  if (KnownValues* const values = ops_.values()) values->copied_out(to, from);
  return event;
}

void VirtualDevice::open_disk(const DiskRequest& request) {
  const bool is_real = !request.folder.empty() || (request.compressed && !request.speed.is_known());
  if (is_real && gpu_.is_functional()) return CudaDevice::open_disk(request);
  if (is_real)
    throw input_error("a virtual GPU has no data to write to a disk",
                      "Give the speed of its disk: --disk-bandwidth 2GB/s");
  set_disk(std::make_unique<ModelledDeviceDisk>(
      request.speed, gpu_, [this](CopyQueue queue) { return stream_of(queue); },
      [this](Nanoseconds time) { return on_device_clock(time); }));
}

Nanoseconds VirtualDevice::time_of(TimeMark mark) const {
  return on_device_clock(mark);
}

Nanoseconds VirtualDevice::on_device_clock(Nanoseconds virtual_time) const {
  return origin_ns() + virtual_time - gpu_.event_time(origin());
}

std::optional<StepSize> VirtualDevice::take_step_size() {
  StepSize size{.flops = gpu_.take_flops()};
  if (const std::int64_t tokens = ops_.take_tokens(); tokens > 0) size.tokens = tokens;
  return size;
}

std::optional<Error> VirtualDevice::take_model_refusal() {
  std::string names;
  for (const std::string& op : ops_.take_shapes_by_values()) names += (names.empty() ? "" : ", ") + op;
  if (names.empty()) return std::nullopt;
  return input_error("the model's shapes depend on its data, but a virtual GPU has no data: the memory of " +
                         names + " is unknown",
                     "No device can predict such a model, since its steps differ. Where a mask or an index "
                     "selects elements, "
                     "use torch.where or multiply by the mask to keep the shape.");
}

std::vector<std::string> VirtualDevice::take_notes() {
  std::vector<std::string> notes = CudaDevice::take_notes();
  for (const std::string& op : ops_.take_value_reads())
    notes.push_back(
        std::string(kValueReadsNote) + " (" + op +
        "): on a virtual GPU they are zeros, and control flow and shapes are computed from these zeros");
  std::string unknown;
  for (const std::string& what : gpu_.take_unknown_sizes()) unknown += (unknown.empty() ? "" : ", ") + what;
  if (!unknown.empty())
    notes.push_back("sizes that only NVIDIA's libraries know are counted as 0: " + unknown +
                    "; a real GPU uses more memory");
  if (const auto launches = gpu_.take_launch_times()) notes.push_back(note_of(*launches));
  return notes;
}

Nanoseconds VirtualDevice::elapsed(cudaEvent_t from, cudaEvent_t to) const {
  return gpu_.event_time(to) - gpu_.event_time(from);
}

}  // namespace offprof
