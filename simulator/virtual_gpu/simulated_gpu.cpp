#include "simulator/virtual_gpu/simulated_gpu.h"

#include <algorithm>
#include <utility>

#include "traces/check.h"

namespace offprof {

SimulatedGpu::SimulatedGpu() : time_(Link{}) {}

SimulatedGpu::~SimulatedGpu() = default;

void SimulatedGpu::configure(VirtualGpuOptions options) {
  const Lock lock(mutex_);
  restart(std::move(options));
}

void SimulatedGpu::configure_by_default() {
  const Lock lock(mutex_);
  if (is_configured_) return;
  VirtualGpuOptions options;
  options.profile = load_profile("h200");
  restart(std::move(options));
}

void SimulatedGpu::restart(VirtualGpuOptions options) {
  options_ = std::move(options);
  cost_.emplace(options_.profile, options_.kernel_times);
  memory_.set_limit(options_.profile.memory_bytes);
  memory_.set_real(options_.carries_out);
  time_.restart(options_.profile.link);
  kernels_.restart_counts();
  order_.reset();
  carried_out_.reset();
  if (options_.checks_streams) order_.emplace();
  if (options_.carries_out) carried_out_.emplace(options_.seed);
  for (const auto& [stream, kind] : streams_) {
    if (order_) order_->stream_created(stream, kind);
    if (carried_out_) carried_out_->stream_created(stream, kind);
  }
  is_configured_ = true;
}

DeviceProfile SimulatedGpu::profile() const {
  const Lock lock(mutex_);
  return options_.profile;
}

void SimulatedGpu::begin_op(const OpCall& op) {
  const Lock lock(mutex_);
  ops_.begin(op);
  if (order_) order_->set_op(op.name);
}

void SimulatedGpu::end_op() {
  const Lock lock(mutex_);
  ops_.end();
  if (order_) order_->set_op(ops_.innermost_name());
}

void SimulatedGpu::block_allocated(const void* block, Bytes bytes, void* stream) {
  const Lock lock(mutex_);
  ops_.add_allocated(bytes);
  if (order_) order_->block_allocated(block, bytes, stream);
}

void SimulatedGpu::block_freed(const void* block) {
  const Lock lock(mutex_);
  if (order_) order_->block_freed(block);
}

void SimulatedGpu::host_block_allocated(const void* block, Bytes bytes) {
  const Lock lock(mutex_);
  if (order_) order_->host_block_allocated(block, bytes);
}

void SimulatedGpu::host_block_freed(const void* block) {
  const Lock lock(mutex_);
  if (order_) order_->host_block_freed(block);
}

Nanoseconds SimulatedGpu::event_time(void* event) const {
  const Lock lock(mutex_);
  OFFPROF_CHECK(time_.has_event(event));
  const std::optional<Nanoseconds> time = time_.event_time(event);
  OFFPROF_CHECK(time.has_value());
  return *time;
}

Nanoseconds SimulatedGpu::host_time() const {
  const Lock lock(mutex_);
  return time_.host_time();
}

std::vector<StreamHazard> SimulatedGpu::take_hazards() {
  const Lock lock(mutex_);
  return order_ ? order_->take_hazards() : std::vector<StreamHazard>{};
}

std::int64_t SimulatedGpu::launches() const {
  const Lock lock(mutex_);
  return kernels_.launches();
}

std::map<std::string, std::int64_t> SimulatedGpu::launches_by_kernel() const {
  const Lock lock(mutex_);
  return kernels_.launches_by_name();
}

std::vector<std::string> SimulatedGpu::unwritten_calls() const {
  const Lock lock(mutex_);
  return unwritten_;
}

void SimulatedGpu::note_unwritten(const char* function) {
  std::function<void(const std::string&)> log;
  {
    const Lock lock(mutex_);
    if (std::find(unwritten_.begin(), unwritten_.end(), function) != unwritten_.end()) return;
    unwritten_.emplace_back(function);
    log = options_.log;
  }
  if (log) log(function);
}

void SimulatedGpu::register_kernel(const void* host_stub, const char* mangled_name) {
  const Lock lock(mutex_);
  kernels_.add(host_stub, mangled_name);
}

void SimulatedGpu::register_variable(const void* host_shadow, Bytes bytes) {
  const Lock lock(mutex_);
  variables_[host_shadow] = {.bytes = bytes};
}

void* SimulatedGpu::variable_address(const void* host_shadow) {
  const Lock lock(mutex_);
  const auto found = variables_.find(host_shadow);
  if (found == variables_.end()) return nullptr;
  Variable& variable = found->second;
  if (variable.address == nullptr) variable.address = memory_.place_variable(variable.bytes);
  return variable.address;
}

}  // namespace offprof
