#include "engine/devices/virtual_gpu/model/kernel_cost.h"

#include <algorithm>
#include <cmath>
#include <utility>

#include "traces/base/whole_number.h"
#include "traces/model/calibration.h"

namespace offprof {
namespace {

constexpr double kNanosecondsPerSecond = 1e9;

std::string key_of(const OpCall& op, bool with_dtypes) {
  std::vector<OperandKey> operands;
  operands.reserve(op.operands.size());
  for (const OperandShape& operand : op.operands)
    operands.push_back({with_dtypes ? operand.dtype : std::string_view(), operand.sizes});
  return op_key(op.name, operands);
}

/// Returns the recorded time by the key with dtypes, or else by the key without, since traces have no dtypes
/// of tensors in lists.
std::optional<Nanoseconds> recorded_time(const KernelTimes& recorded, const OpCall& op) {
  const auto exact = recorded.of_op(key_of(op, true));
  return exact ? exact : recorded.of_op(key_of(op, false));
}

/// Returns the peak rate for the operator. Without tensor cores everything but float64 is computed at the
/// rate of float32, as are dtypes that the profile does not name (integers, complex numbers).
double peak_of(const DeviceProfile& profile, const OpWork& work) {
  const bool own_rate = work.tensor_cores || work.dtype == "float64";
  const auto found =
      own_rate ? profile.flops_per_second.find(std::string(work.dtype)) : profile.flops_per_second.end();
  return found != profile.flops_per_second.end() ? found->second : profile.flops_per_second.at("float32");
}

Nanoseconds roofline(const DeviceProfile& profile, const OpWork& work) {
  const double compute = work.flops / (peak_of(profile, work) * profile.compute_efficiency);
  const double memory =
      static_cast<double>(work.bytes) / (profile.memory_bytes_per_second * profile.memory_efficiency);
  return std::min(to_whole(std::max(compute, memory) * kNanosecondsPerSecond), kLongestMeasured);
}

}  // namespace

KernelCost::KernelCost(DeviceProfile profile, KernelTimes recorded)
    : profile_(std::move(profile)), recorded_(std::move(recorded)) {}

KernelTime KernelCost::time_of(const KernelLaunch& launch, const OpCall* op, Bytes allocated,
                               bool first) const {
  if (!recorded_.empty()) {
    if (op != nullptr && !launch.argument_bytes)
      if (const auto of_op = recorded_time(recorded_, *op))
        return {first ? *of_op : 0, TimeSource::kRecordedOp};
    if (const auto of_kernel = recorded_.of_kernel(kernel_key(launch.name, launch.grid, launch.block)))
      return {*of_kernel, TimeSource::kRecordedKernel};
  }
  if (launch.argument_bytes)
    return {std::max(profile_.kernel_ns, roofline(profile_, {.bytes = *launch.argument_bytes}))};
  if (op == nullptr || !first) return {profile_.kernel_ns};
  return {std::max(profile_.kernel_ns, roofline(profile_, work_of(*op, allocated)))};
}

}  // namespace offprof
