#pragma once

#include <string_view>

namespace offprof {

/// Range of real times over modelled ones. Nine of ten lie in it.
struct TimeFactors {
  double low = 1, high = 1;
  bool operator==(const TimeFactors&) const = default;
};

/// Returns the range of the kernels of a family of operators (engine/devices/virtual_gpu/work/op_family.h);
/// that of `other` if there is no such family.
TimeFactors kernel_factors(std::string_view family);

/// Returns the range of the host time of a TorchScript module, for which only launches are modelled.
TimeFactors host_factors();

/// Returns the range of the host time of a Python program: launches, and what is between them.
TimeFactors python_host_factors();

/// Returns the range of copies between the device and the host.
TimeFactors copy_factors();

}  // namespace offprof
