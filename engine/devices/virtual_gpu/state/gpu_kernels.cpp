#include "engine/devices/virtual_gpu/state/gpu_kernels.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <utility>
#include <vector>

namespace offprof {

void GpuKernels::restart() {
  cost_.emplace(state_.options.profile, state_.options.kernel_times);
  table_.restart_counts();
  launch_times_ = {};
  flops_ = 0;
}

void GpuKernels::register_module(const void* fat_binary) {
  const GpuLock lock(state_.mutex);
  table_.add_module(fat_binary);
}

void GpuKernels::register_kernel(const void* host_stub, const char* mangled_name, const void* module) {
  const GpuLock lock(state_.mutex);
  table_.add(host_stub, mangled_name, module);
}

std::optional<GpuCode> GpuKernels::code_of(const void* host_stub) {
  const GpuLock lock(state_.mutex);
  return table_.code(host_stub, capability());
}

std::string GpuKernels::code_problem() {
  const GpuLock lock(state_.mutex);
  if (table_.has_code_for(capability())) return {};
  const auto text = [](int capability) { return fmt::format("{}.{}", capability / 10, capability % 10); };
  std::vector<std::string> held;
  for (const int held_one : table_.capabilities()) held.push_back(text(held_one));
  return fmt::format("{} has compute capability {}, but this LibTorch has code only for {}",
                     state_.options.profile.device_name, text(capability()), fmt::join(held, ", "));
}

int GpuKernels::capability() const {
  return 10 * state_.options.profile.compute_capability_major +
         state_.options.profile.compute_capability_minor;
}

void GpuKernels::spend_host_time(HostWork work, std::int64_t times) {
  const GpuLock lock(state_.mutex);
  state_.time.advance_host(times * state_.options.profile.host.of(work));
}

void GpuKernels::begin_op(const OpCall& op) {
  const GpuLock lock(state_.mutex);
  ops().begin(op);
  if (state_.races) state_.races->set_op(op.name);
}

void GpuKernels::end_op() {
  const GpuLock lock(state_.mutex);
  ops().end();
  if (state_.races) state_.races->set_op(ops().innermost_name());
}

void GpuKernels::add_allocated(const void* block, Bytes bytes) {
  ops().add_allocated(block, bytes);
}

void GpuKernels::exclude_workspace(const void* workspace) {
  const GpuLock lock(state_.mutex);
  ops().exclude_workspace(workspace);
}

GpuStatus GpuKernels::launch(StreamId stream, const KernelLaunch& launch) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  run(stream, launch, launch.name);
  return GpuStatus::kOk;
}

GpuStatus GpuKernels::launch(StreamId stream, const void* host_stub, KernelLaunch launch) {
  const GpuLock lock(state_.mutex);
  if (!state_.time.has_stream(stream)) return GpuStatus::kInvalidHandle;
  if (!table_.code(host_stub, capability())) return GpuStatus::kNoCode;
  launch.name = table_.name(host_stub);
  const char* mangled = table_.mangled_name(host_stub);
  run(stream, launch, mangled == nullptr ? launch.name : mangled);
  return GpuStatus::kOk;
}

void GpuKernels::run(StreamId stream, const KernelLaunch& launch, std::string_view symbol) {
  OpStack::Frame outside;
  OpStack::Frame& frame = ops().empty() ? outside : ops().innermost();
  const KernelTime time = cost_->time_of(launch, frame.op, frame.allocated, !frame.has_launched);
  run_for(stream, launch, symbol, time.duration);
  state_.watched_ends.computed_on(stream);
  forget_written();
  count_time(time.source);
  if (frame.op != nullptr && !frame.op->is_computed_again) flops_ += time.flops;
  if (!launch.argument_bytes) frame.has_launched = true;
}

/// Forgets what a kernel may have written: the operator it belongs to tells about its results.
void GpuKernels::forget_written() {
  if (!ops().empty()) return state_.values.forget_at_kernel();
  state_.values.forget_all();
  ++launches_outside_operators_;
}

void GpuKernels::run_for(StreamId stream, std::string_view name, Nanoseconds duration) {
  run_for(stream, {.name = name}, name, duration);
}

void GpuKernels::run_for(StreamId stream, const KernelLaunch& launch, std::string_view symbol,
                         Nanoseconds duration) {
  state_.time.advance_host(launch_ns());
  const TimeSpan span = state_.time.run(stream, duration);
  if (GpuObserver* observer = state_.observer) observer->on_kernel(stream, launch, symbol, span);
  streams_.note_kernel(stream);
  table_.count_launch(launch.name);
  if (state_.races) state_.races->kernel(stream, launch.name);
}

Nanoseconds GpuKernels::launch_ns() {
  const DeviceProfile& profile = state_.options.profile;
  const bool is_of_python = !ops().empty() && ops().innermost().op->is_of_python;
  return profile.launch_ns + (is_of_python ? profile.host.of(HostWork::kLaunch) : 0);
}

void GpuKernels::count_time(TimeSource source) {
  switch (source) {
    case TimeSource::kRecordedOp:
      ++launch_times_.by_op;
      break;
    case TimeSource::kRecordedKernel:
      ++launch_times_.by_kernel;
      break;
    case TimeSource::kEstimate:
      ++launch_times_.estimated;
      break;
  }
}

std::int64_t GpuKernels::launches() const {
  const GpuLock lock(state_.mutex);
  return table_.launches();
}

std::map<std::string, std::int64_t> GpuKernels::launches_by_kernel() const {
  const GpuLock lock(state_.mutex);
  return table_.launches_by_name();
}

double GpuKernels::take_flops() {
  const GpuLock lock(state_.mutex);
  return std::exchange(flops_, 0);
}

std::optional<LaunchTimes> GpuKernels::take_launch_times() {
  const GpuLock lock(state_.mutex);
  const LaunchTimes taken = std::exchange(launch_times_, {});
  return state_.options.kernel_times.empty() ? std::nullopt : std::optional(taken);
}

}  // namespace offprof
