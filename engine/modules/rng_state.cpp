#include "engine/modules/rng_state.h"

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

void RngState::restore() const {
  at::Generator current = at::detail::getDefaultCPUGenerator();
  {
    const std::lock_guard lock(current.mutex());
    at::CPUGeneratorImpl& to = cpu_generator(current);
    at::CPUGeneratorImpl& from = cpu_generator(cpu_);
    to.set_engine(from.engine());
    to.set_next_float_normal_sample(from.next_float_normal_sample());
    to.set_next_double_normal_sample(from.next_double_normal_sample());
  }
  if (device_.is_cpu()) return;
  at::Generator other = at::globalContext().defaultGenerator(device_);
  const std::lock_guard lock(other.mutex());
  other.set_current_seed(device_seed_);  // which sets the offset to 0
  other.set_offset(device_offset_);
}

}  // namespace offprof
