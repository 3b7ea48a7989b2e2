#include "engine/devices/virtual_gpu/work/kernel_passes.h"

#include <algorithm>
#include <utility>

namespace offprof {

Bytes bytes_of(const OpCall& op, std::size_t operand) {
  return operand < op.operands.size() ? op.operands[operand].bytes : 0;
}

WorkRule one_pass(std::size_t inputs) {
  return [=](const KernelLaunch&, const OpCall& op, Bytes allocated) {
    KernelWork kernel{.work = {.bytes = allocated}};
    for (std::size_t i = 0; i < inputs; ++i) kernel.work.bytes += bytes_of(op, i);
    return kernel;
  };
}

WorkRule reading(std::size_t inputs) {
  return [=](const KernelLaunch&, const OpCall& op, Bytes) {
    KernelWork kernel;
    for (std::size_t i = 0; i < inputs; ++i) kernel.work.bytes += bytes_of(op, i);
    return kernel;
  };
}

WorkRule reading_singly(std::size_t inputs) {
  return [=](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    KernelWork kernel = reading(inputs)(launch, op, allocated);
    for (std::size_t i = 0; i < std::min(inputs, op.operands.size()); ++i)
      kernel.single_elements += op.operands[i].elements();
    return kernel;
  };
}

WorkRule at_least(double share, WorkRule work, std::size_t counted) {
  return [=, work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    KernelWork kernel = work(launch, op, allocated);
    if (counted < op.operands.size()) kernel.single_elements = share * op.operands[counted].elements();
    return kernel;
  };
}

WorkRule with_waits(double loads, WorkRule work) {
  constexpr double kOfRmsNorm = 1;  // on an H100
  return [loads, work = std::move(work)](const KernelLaunch& launch, const OpCall& op, Bytes allocated) {
    const bool is_rms_norm = op.name.find("rms_norm") != std::string_view::npos;
    KernelWork kernel = work(launch, op, allocated);
    kernel.waits_of_block = is_rms_norm ? kOfRmsNorm : loads;
    return kernel;
  };
}

}  // namespace offprof
