#pragma once

#include <cstddef>
#include <functional>
#include <map>
#include <string_view>

#include "engine/devices/virtual_gpu/work/kernel_launch.h"
#include "engine/devices/virtual_gpu/work/kernel_work.h"
#include "engine/devices/virtual_gpu/work/op_work.h"
#include "traces/base/units.h"

namespace offprof {

/// Returns the work of a kernel of an operator that has allocated so many bytes.
using WorkRule = std::function<KernelWork(const KernelLaunch& launch, const OpCall& op, Bytes allocated)>;
/// By the kernels' own names.
using WorkByName = std::map<std::string_view, WorkRule, std::less<>>;

/// Returns the bytes of an operand that a kernel reads, in whole; 0 if there is none.
Bytes bytes_of(const OpCall& op, std::size_t operand);

/// Reads the first `inputs` operands once and writes the allocated result.
WorkRule one_pass(std::size_t inputs);

/// Reads the first `inputs` operands once. What it writes is small.
WorkRule reading(std::size_t inputs);

/// The same, one element at a time.
WorkRule reading_singly(std::size_t inputs);

/// Wraps `work`: each element of operand `counted` takes at least `share` of the time of an elementwise
/// kernel, since it is converted, or its exponential computed, and threads wait for each other's sums.
WorkRule at_least(double share, WorkRule work, std::size_t counted = 0);

/// Wraps `work`: before a block writes, it waits for its row, and its threads for each other's sums, as long
/// as for so many loads. An RMS norm has one sum; a layer norm has moments, which are exchanged in steps.
WorkRule with_waits(double loads, WorkRule work);

}  // namespace offprof
