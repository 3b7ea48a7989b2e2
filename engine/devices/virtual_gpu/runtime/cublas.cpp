#include "engine/devices/virtual_gpu/runtime/library_handle.h"
#include "engine/devices/virtual_gpu/runtime/library_version.h"

using namespace offprof::runtime;

namespace {

struct CublasHandle : LibraryHandle {
  int math_mode = 0;     // CUBLAS_DEFAULT_MATH
  int pointer_mode = 0;  // CUBLAS_POINTER_MODE_HOST
};

constexpr LibraryVersion kVersion = {OFFPROF_CUBLAS_VERSION};

}  // namespace

extern "C" {

int cublasCreate_v2(CublasHandle** handle) {
  *handle = new CublasHandle;
  return 0;
}

int cublasDestroy_v2(CublasHandle* handle) {
  delete handle;
  return 0;
}

int cublasGetVersion_v2(CublasHandle*, int* version) {
  *version = kVersion.number();
  return 0;
}

int cublasSetStream_v2(CublasHandle* handle, offprof::StreamId stream) {
  handle->stream = stream;
  return 0;
}

// PyTorch provides the workspace, which counts as memory like any tensor, and not as traffic: from
// version 2.15 on it is allocated for each operator.
int cublasSetWorkspace_v2(CublasHandle*, void* workspace, unsigned long) {
  gpu().kernels().exclude_workspace(workspace);
  return 0;
}

int cublasSetMathMode(CublasHandle* handle, int mode) {
  handle->math_mode = mode;
  return 0;
}

int cublasGetMathMode(const CublasHandle* handle, int* mode) {
  *mode = handle->math_mode;
  return 0;
}

int cublasSetPointerMode_v2(CublasHandle* handle, int mode) {
  handle->pointer_mode = mode;
  return 0;
}

int cublasGetPointerMode_v2(const CublasHandle* handle, int* mode) {
  *mode = handle->pointer_mode;
  return 0;
}

// Functions that training calls: products of matrices and vectors, and batched solvers.
#define OFFPROF_LIBRARY_CALL_SDCZ(stem) \
  OFFPROF_LIBRARY_CALL(cublasS##stem)   \
  OFFPROF_LIBRARY_CALL(cublasD##stem)   \
  OFFPROF_LIBRARY_CALL(cublasC##stem)   \
  OFFPROF_LIBRARY_CALL(cublasZ##stem)

OFFPROF_LIBRARY_CALL_SDCZ(gemm_v2)
OFFPROF_LIBRARY_CALL_SDCZ(gemmBatched)
OFFPROF_LIBRARY_CALL_SDCZ(gemmStridedBatched)
OFFPROF_LIBRARY_CALL_SDCZ(gemv_v2)
OFFPROF_LIBRARY_CALL_SDCZ(axpy_v2)
OFFPROF_LIBRARY_CALL_SDCZ(scal_v2)
OFFPROF_LIBRARY_CALL_SDCZ(trsm_v2)
OFFPROF_LIBRARY_CALL_SDCZ(trsmBatched)
OFFPROF_LIBRARY_CALL_SDCZ(getrfBatched)
OFFPROF_LIBRARY_CALL_SDCZ(getrsBatched)
OFFPROF_LIBRARY_CALL_SDCZ(geqrfBatched)
OFFPROF_LIBRARY_CALL(cublasSgemmEx)
OFFPROF_LIBRARY_CALL(cublasGemmEx)
OFFPROF_LIBRARY_CALL(cublasGemmBatchedEx)
OFFPROF_LIBRARY_CALL(cublasGemmStridedBatchedEx)
OFFPROF_LIBRARY_CALL(cublasDotEx)
OFFPROF_LIBRARY_CALL(cublasSdot_v2)
OFFPROF_LIBRARY_CALL(cublasDdot_v2)
OFFPROF_LIBRARY_CALL(cublasCdotu_v2)
OFFPROF_LIBRARY_CALL(cublasCdotc_v2)
OFFPROF_LIBRARY_CALL(cublasZdotu_v2)
OFFPROF_LIBRARY_CALL(cublasZdotc_v2)

}  // extern "C"
