#include "engine/devices/virtual_gpu/state/simulated_gpu.h"

#include <utility>

#include "traces/base/error.h"

namespace offprof {

SimulatedGpu::SimulatedGpu() = default;

SimulatedGpu::~SimulatedGpu() = default;

void SimulatedGpu::configure(VirtualGpuOptions options) {
  const GpuLock lock(state_.mutex);
  restart(std::move(options));
}

void SimulatedGpu::configure_by_default() {
  const GpuLock lock(state_.mutex);
  if (is_configured_) return;
  VirtualGpuOptions options;
  options.profile = load_profile(kDefaultProfile);
  restart(std::move(options));
}

void SimulatedGpu::restart(VirtualGpuOptions options) {
  state_.restart(std::move(options));
  memory_.restart();
  streams_.restart();
  kernels_.restart();
  collectives_.restart();
  is_configured_ = true;
}

DeviceProfile SimulatedGpu::profile() const {
  const GpuLock lock(state_.mutex);
  return state_.options.profile;
}

int SimulatedGpu::devices() const {
  const GpuLock lock(state_.mutex);
  return state_.options.devices;
}

Link SimulatedGpu::link() const {
  const GpuLock lock(state_.mutex);
  Link link = state_.options.profile.link;
  link.launch_ns = state_.options.profile.launch_ns;
  return link;
}

void SimulatedGpu::block_allocated(const void* block, Bytes bytes, void* stream) {
  const GpuLock lock(state_.mutex);
  kernels_.add_allocated(block, bytes);
  state_.values.forget(block, bytes);
  memory_.add_block(block, bytes);
  if (state_.races) state_.races->block_allocated(block, bytes, stream);
}

void SimulatedGpu::block_freed(const void* block) {
  const GpuLock lock(state_.mutex);
  state_.requested_free.end();
  state_.values.forget(block, memory_.remove_block(block));
  if (state_.races) state_.races->block_freed(block);
}

void SimulatedGpu::free_requested() {
  const GpuLock lock(state_.mutex);
  state_.requested_free.begin();
}

std::vector<std::int32_t> SimulatedGpu::take_free_points() {
  const GpuLock lock(state_.mutex);
  std::vector<std::int32_t> points = state_.requested_free.take_points();
  std::erase(points, -1);
  return points;
}

void SimulatedGpu::host_block_allocated(const void* block, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  if (state_.races) state_.races->host_block_allocated(block, bytes);
}

void SimulatedGpu::host_block_freed(const void* block) {
  const GpuLock lock(state_.mutex);
  if (state_.races) state_.races->host_block_freed(block);
}

std::vector<StreamHazard> SimulatedGpu::take_hazards() {
  const GpuLock lock(state_.mutex);
  return state_.races ? state_.races->take_hazards() : std::vector<StreamHazard>{};
}

Work SimulatedGpu::take_work() {
  const GpuLock lock(state_.mutex);
  return state_.time.take_work();
}

Nanoseconds SimulatedGpu::take_compute_loss() {
  const GpuLock lock(state_.mutex);
  return state_.time.take_compute_loss();
}

Work SimulatedGpu::take_side_work() {
  const GpuLock lock(state_.mutex);
  return state_.time.take_side_work();
}

std::vector<char> SimulatedGpu::read_values(const void* from, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  try {
    return state_.values.read(from, bytes);
  } catch (const Error& error) {  // of another rank
    state_.read_problem = error.what();
    return {};
  }
}

void SimulatedGpu::set_values(const void* to, const std::vector<char>& contents) {
  const GpuLock lock(state_.mutex);
  state_.values.write(to, contents.data(), static_cast<Bytes>(contents.size()),
                      SmallValues::Known::kUntilWritten);
}

void SimulatedGpu::forget_values(const void* from, Bytes bytes) {
  const GpuLock lock(state_.mutex);
  state_.values.forget(from, bytes);
}

void SimulatedGpu::answer_reads(std::optional<std::int64_t> number) {
  const GpuLock lock(state_.mutex);
  state_.answer = number;
}

std::int64_t SimulatedGpu::unknown_reads() const {
  const GpuLock lock(state_.mutex);
  return state_.unknown_reads;
}

void SimulatedGpu::note_stream_commands(bool noted) {
  const GpuLock lock(state_.mutex);
  state_.time.note_stream_commands(noted);
}

std::vector<StreamCommand> SimulatedGpu::take_stream_commands() {
  const GpuLock lock(state_.mutex);
  return state_.time.take_stream_commands();
}

Nanoseconds SimulatedGpu::host_time() const {
  const GpuLock lock(state_.mutex);
  return state_.time.host_time();
}

Nanoseconds SimulatedGpu::stream_time(void* stream) {
  const GpuLock lock(state_.mutex);
  return state_.time.stream_time(stream);
}

void SimulatedGpu::hold_host(Nanoseconds until) {
  const GpuLock lock(state_.mutex);
  state_.time.hold_host(until);
}

void SimulatedGpu::hold_stream(void* stream, Nanoseconds until) {
  const GpuLock lock(state_.mutex);
  state_.time.hold_stream(stream, until);
}

std::int64_t SimulatedGpu::commands_given() const {
  const GpuLock lock(state_.mutex);
  return state_.time.commands_given();
}

std::map<std::string, std::int64_t> SimulatedGpu::launches_by_kernel() const {
  return kernels_.launches_by_kernel();
}

std::vector<std::string> SimulatedGpu::unwritten_calls() const {
  return unsupported_calls_.unwritten_calls();
}

std::vector<std::string> SimulatedGpu::take_unknown_sizes() {
  return unsupported_calls_.take_unknown_sizes();
}

}  // namespace offprof
