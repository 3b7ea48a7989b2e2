#pragma once

#include <array>
#include <string_view>

namespace offprof {

/// Schema of profile files: docs/reference/gpu-profiles.md.
inline constexpr std::string_view kProfileSchema = "offprof.gpu_profile/1";
/// Dtypes whose peak rates a profile has.
inline constexpr std::array<const char*, 5> kProfileDtypes = {"float64", "float32", "tf32", "float16",
                                                              "bfloat16"};

}  // namespace offprof
