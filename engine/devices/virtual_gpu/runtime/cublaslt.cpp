#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/devices/virtual_gpu/runtime/access.h"
#include "engine/devices/virtual_gpu/runtime/descriptor.h"
#include "engine/devices/virtual_gpu/runtime/library_version.h"

using namespace offprof::runtime;

namespace {

// cublasLtMatmulHeuristicResult_t: an algorithm, its requirements, and if it is available. The caller
// allocates it.
struct HeuristicResult {
  std::uint64_t algorithm[8];
  std::size_t workspace_bytes;
  int status;
  float waves;
  int reserved[4];
};
static_assert(sizeof(HeuristicResult) == 96, "as in cublasLt.h");

constexpr LibraryVersion kVersion = {OFFPROF_CUBLAS_VERSION};

}  // namespace

extern "C" {

std::size_t cublasLtGetVersion() {
  return static_cast<std::size_t>(kVersion.number());
}

int cublasLtMatmulDescCreate(void** descriptor, int, int) {
  return create_descriptor(descriptor);
}
int cublasLtMatmulDescDestroy(void* descriptor) {
  return destroy_descriptor(descriptor);
}
int cublasLtMatmulDescSetAttribute(void*, int, const void*, std::size_t) {
  return 0;
}
int cublasLtMatrixLayoutCreate(void** layout, int, std::uint64_t, std::uint64_t, std::int64_t) {
  return create_descriptor(layout);
}
int cublasLtMatrixLayoutDestroy(void* layout) {
  return destroy_descriptor(layout);
}
int cublasLtMatrixLayoutSetAttribute(void*, int, const void*, std::size_t) {
  return 0;
}
int cublasLtMatmulPreferenceCreate(void** preference) {
  return create_descriptor(preference);
}
int cublasLtMatmulPreferenceDestroy(void* preference) {
  return destroy_descriptor(preference);
}
int cublasLtMatmulPreferenceSetAttribute(void*, int, const void*, std::size_t) {
  return 0;
}

// Offers one algorithm without a workspace: PyTorch allocates its workspace before it asks.
int cublasLtMatmulAlgoGetHeuristic(void*, void*, void*, void*, void*, void*, void*, int requested,
                                   HeuristicResult* results, int* returned) {
  *returned = requested > 0 ? 1 : 0;
  if (requested > 0) std::memset(results, 0, sizeof *results);
  return 0;
}

int cublasLtMatmul(void*, void*, const void*, const void*, void*, const void*, void*, const void*,
                   const void*, void*, void*, void*, const void*, void* workspace, std::size_t,
                   offprof::StreamId stream) {
  gpu().kernels().exclude_workspace(workspace);
  launch_library_call(stream, "cublasLtMatmul");
  return 0;
}

}  // extern "C"
