#pragma once

#include <string_view>

namespace offprof {

/// Range of real times over modelled ones. Nine of ten lie in it.
struct TimeFactors {
  double low = 1, high = 1;
  bool operator==(const TimeFactors&) const = default;
};

/// Returns the family of an operator (`aten::addmm`: `products`), by whose range its kernels are judged.
/// `other` for operators without a family of their own, and for names that are not operators.
std::string_view family_of(std::string_view op);

/// Returns the range of the kernels of a family; that of `other` if there is no such family.
TimeFactors kernel_factors(std::string_view family);

/// Returns the range of the host time of a program: launches, and what the program does between them.
TimeFactors host_factors();

/// Returns the range of copies between the device and the host.
TimeFactors copy_factors();

}  // namespace offprof
