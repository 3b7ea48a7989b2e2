#include "engine/torch/rng_state.h"

#include <ATen/CPUGeneratorImpl.h>
#include <ATen/Context.h>

#include <mutex>

namespace offprof {
namespace {

at::CPUGeneratorImpl& cpu_generator(const at::Generator& generator) {
  return *at::check_generator<at::CPUGeneratorImpl>(generator);
}

}  // namespace

RngState::RngState(c10::Device device) : device_(device) {
  at::Generator current = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(current.mutex());
    cpu_ = current.clone();
  }
  if (device_.is_cpu()) return;
  at::Generator other = at::globalContext().defaultGenerator(device_);
  const std::lock_guard lock(other.mutex());
  device_seed_ = other.current_seed();
  device_offset_ = other.get_offset();
}

void RngState::restore_cpu() const {
  at::Generator current = at::detail::getDefaultCPUGenerator();
  const std::lock_guard lock(current.mutex());
  at::CPUGeneratorImpl& to = cpu_generator(current);
  at::CPUGeneratorImpl& from = cpu_generator(cpu_);
  to.set_engine(from.engine());
  to.set_next_float_normal_sample(from.next_float_normal_sample());
  to.set_next_double_normal_sample(from.next_double_normal_sample());
}

void RngState::restore() const {
  restore_cpu();
  if (device_.is_cpu()) return;
  at::Generator other = at::globalContext().defaultGenerator(device_);
  const std::lock_guard lock(other.mutex());
  other.set_current_seed(device_seed_);  // which sets the offset to 0
  other.set_offset(device_offset_);
}

at::Generator RngState::device_generator() const {
  at::Generator generator = at::globalContext().defaultGenerator(device_).clone();
  generator.set_current_seed(device_seed_);  // which sets the offset to 0
  generator.set_offset(device_offset_);
  return generator;
}

DrawScope::DrawScope(const RngState& state) : before_(state.device()) {
  state.restore_cpu();
  if (before_.device().is_cpu()) return;
  at::Generator current = at::globalContext().defaultGenerator(before_.device());
  const at::Generator another = state.device_generator();
  const std::lock_guard lock(current.mutex());
  own_ = current.graphsafe_get_state();
  current.graphsafe_set_state(another);
}

DrawScope::~DrawScope() {
  before_.restore_cpu();
  if (!own_.defined()) return;
  at::Generator current = at::globalContext().defaultGenerator(before_.device());
  const std::lock_guard lock(current.mutex());
  current.graphsafe_set_state(own_);
}

}  // namespace offprof
