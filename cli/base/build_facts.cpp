#include "cli/base/build_facts.h"

#include <fmt/format.h>

namespace offprof {
namespace {

// CMake defines these only for a build with the engine.
#ifdef OFFPROF_BUILD_TORCH
constexpr const char* kTorch = OFFPROF_BUILD_TORCH;
constexpr const char* kCuda = OFFPROF_BUILD_CUDA;
#else
constexpr const char* kTorch = "none: built without the engine";
constexpr const char* kCuda = "none";
#endif

#ifdef __clang__
constexpr const char* kCompiler = "Clang " __clang_version__;
#else
constexpr const char* kCompiler = "GCC " __VERSION__;
#endif

}  // namespace

std::vector<BuildFact> build_facts() {
  return {{"compiler", fmt::format("{}, {} build", kCompiler, OFFPROF_BUILD_TYPE)},
          {"torch", kTorch},
          {"CUDA", kCuda},
          {"libraries", OFFPROF_BUILD_LIBRARIES},
          {"features", OFFPROF_BUILD_FEATURES}};
}

}  // namespace offprof
