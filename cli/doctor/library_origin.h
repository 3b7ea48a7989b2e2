#pragma once

#include <string>

namespace offprof {

/// Returns a phrase for the place that a library of LibTorch or CUDA was installed by or to, derived from its
/// path: `scripts/setup.sh`, `Python in /home/me/venv`, `LibTorch archive`, `CUDA Toolkit`, `system`.
std::string library_origin(const std::string& path);

}  // namespace offprof
