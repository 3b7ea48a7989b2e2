#include "engine/devices/virtual_gpu/state/execution_state.h"

#include <utility>

namespace offprof {

ExecutionState::ExecutionState() : time(Link{}) {}

ExecutionState::~ExecutionState() = default;

void ExecutionState::restart(VirtualGpuOptions new_options) {
  options = std::move(new_options);
  time.restart(options.profile.link);
  values = {};
  watched_ends = {};
  races.reset();
  functional_mode.reset();
  answer.reset();
  read_problem.clear();
  if (options.checks_streams) races.emplace();
  if (options.functional_mode) functional_mode.emplace(options.seed);
}

void ExecutionState::wait_for_stream(StreamId stream) {
  time.synchronise_stream(stream);
  if (races) races->stream_synchronised(stream);
  if (functional_mode) functional_mode->synchronise_stream(stream);
}

void ExecutionState::wait_for_device() {
  time.synchronise_device();
  if (races) races->device_synchronised();
  if (functional_mode) functional_mode->synchronise_device();
}

}  // namespace offprof
