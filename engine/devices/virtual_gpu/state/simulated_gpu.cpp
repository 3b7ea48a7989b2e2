#include "engine/devices/virtual_gpu/state/simulated_gpu.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <utility>

#include "traces/base/error.h"

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
  options.profile = load_profile(kDefaultProfile);
  restart(std::move(options));
}

void SimulatedGpu::restart(VirtualGpuOptions options) {
  options_ = std::move(options);
  cost_.emplace(options_.profile, options_.kernel_times);
  memory_.set_limit(options_.profile.memory_bytes);
  memory_.set_real(options_.carries_out);
  time_.restart(options_.profile.link);
  kernels_.restart_counts();
  launch_times_ = {};
  kernel_streams_.clear();
  order_.reset();
  functional_mode_.reset();
  if (options_.checks_streams) order_.emplace();
  if (options_.carries_out) functional_mode_.emplace(options_.seed);
  for (const auto& [stream, kind] : streams_) {
    if (order_) order_->stream_created(stream, kind);
    if (functional_mode_) functional_mode_->stream_created(stream, kind);
  }
  is_configured_ = true;
}

DeviceProfile SimulatedGpu::profile() const {
  const Lock lock(mutex_);
  return options_.profile;
}

void SimulatedGpu::begin_op(const OpCall& op) {
  const Lock lock(mutex_);
  ops().begin(op);
  if (order_) order_->set_op(op.name);
}

void SimulatedGpu::end_op() {
  const Lock lock(mutex_);
  ops().end();
  if (order_) order_->set_op(ops().innermost_name());
}

void SimulatedGpu::block_allocated(const void* block, Bytes bytes, void* stream) {
  const Lock lock(mutex_);
  ops().add_allocated(bytes);
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

Nanoseconds SimulatedGpu::event_time(void* event) {
  const Lock lock(mutex_);
  const auto time = time_.has_event(event) ? time_.event_time(event) : std::nullopt;
  if (time) return *time;
  if (!order_)
    throw environment_error("the time of an event was queried, but the event was never recorded",
                            "run with --check-streams to see which event; this is a bug in offprof");
  order_->event_time_asked(event);
  return time_.host_time();
}

Nanoseconds SimulatedGpu::host_time() const {
  const Lock lock(mutex_);
  return time_.host_time();
}

Nanoseconds SimulatedGpu::stream_time(void* stream) {
  const Lock lock(mutex_);
  return time_.stream_time(stream);
}

void SimulatedGpu::hold_host(Nanoseconds until) {
  const Lock lock(mutex_);
  time_.hold_host(until);
}

void SimulatedGpu::hold_stream(void* stream, Nanoseconds until) {
  const Lock lock(mutex_);
  time_.hold_stream(stream, until);
}

std::vector<StreamHazard> SimulatedGpu::take_hazards() {
  const Lock lock(mutex_);
  return order_ ? order_->take_hazards() : std::vector<StreamHazard>{};
}

Work SimulatedGpu::take_work() {
  const Lock lock(mutex_);
  return time_.take_work();
}

Work SimulatedGpu::take_side_work() {
  const Lock lock(mutex_);
  return time_.take_side_work();
}

Link SimulatedGpu::link() const {
  const Lock lock(mutex_);
  Link link = options_.profile.link;
  link.launch_ns = options_.profile.launch_ns;
  return link;
}

std::int64_t SimulatedGpu::launches() const {
  const Lock lock(mutex_);
  return kernels_.launches();
}

std::map<std::string, std::int64_t> SimulatedGpu::launches_by_kernel() const {
  const Lock lock(mutex_);
  return kernels_.launches_by_name();
}

std::optional<LaunchTimes> SimulatedGpu::take_launch_times() {
  const Lock lock(mutex_);
  const LaunchTimes taken = std::exchange(launch_times_, {});
  return options_.kernel_times.empty() ? std::nullopt : std::optional(taken);
}

std::string SimulatedGpu::code_problem() {
  const Lock lock(mutex_);
  if (kernels_.has_code_for(capability())) return {};
  const auto text = [](int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); };
  std::vector<std::string> held;
  for (const int held_one : kernels_.capabilities()) held.push_back(text(held_one));
  return fmt::format("{} has compute capability {}, but this LibTorch has code only for {}",
                     options_.profile.device_name, text(capability()), fmt::join(held, ", "));
}

int SimulatedGpu::capability() const {
  return 10 * options_.profile.compute_capability_major + options_.profile.compute_capability_minor;
}

std::vector<std::string> SimulatedGpu::unwritten_calls() const {
  const Lock lock(mutex_);
  return unwritten_;
}

std::vector<std::string> SimulatedGpu::take_unknown_sizes() {
  const Lock lock(mutex_);
  std::vector<std::string> taken(unknown_sizes_.begin(), unknown_sizes_.end());
  unknown_sizes_.clear();
  return taken;
}

void SimulatedGpu::note_unknown_size(const char* what) {
  const Lock lock(mutex_);
  unknown_sizes_.insert(what);
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

void SimulatedGpu::register_module(const void* fat_binary) {
  const Lock lock(mutex_);
  kernels_.add_module(fat_binary);
}

void SimulatedGpu::register_kernel(const void* host_stub, const char* mangled_name, const void* module) {
  const Lock lock(mutex_);
  kernels_.add(host_stub, mangled_name, module);
}

std::optional<GpuCode> SimulatedGpu::code_of(const void* host_stub) {
  const Lock lock(mutex_);
  return kernels_.code(host_stub, capability());
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
