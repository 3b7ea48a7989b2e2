#include "engine/devices/virtual_gpu/runtime/cudart.h"

// Functions that LibTorch calls since version 2.12, and that are not simulated: graphs with conditions and
// dependencies, libraries of kernels, managed memory. A false success would make figures wrong.

using namespace offprof::runtime;

#define OFFPROF_UNSUPPORTED(function, ...) \
  cudaError_t function(__VA_ARGS__) {      \
    return noted(cudaErrorNotSupported);   \
  }

extern "C" {

OFFPROF_UNSUPPORTED(cudaMallocManaged, void**, std::size_t, unsigned)

OFFPROF_UNSUPPORTED(cudaStreamBeginCaptureToGraph, cudaStream_t, cudaGraph_t, const cudaGraphNode_t*,
                    const cudaGraphEdgeData*, std::size_t, cudaStreamCaptureMode)
OFFPROF_UNSUPPORTED(cudaStreamUpdateCaptureDependencies, cudaStream_t, cudaGraphNode_t*,
                    const cudaGraphEdgeData*, std::size_t, unsigned)
OFFPROF_UNSUPPORTED(cudaGraphAddNode, cudaGraphNode_t*, cudaGraph_t, const cudaGraphNode_t*,
                    const cudaGraphEdgeData*, std::size_t, cudaGraphNodeParams*)
OFFPROF_UNSUPPORTED(cudaGraphConditionalHandleCreate, cudaGraphConditionalHandle*, cudaGraph_t, unsigned,
                    unsigned)
OFFPROF_UNSUPPORTED(cudaGraphInstantiate, cudaGraphExec_t*, cudaGraph_t, unsigned long long)
OFFPROF_UNSUPPORTED(cudaGraphRetainUserObject, cudaGraph_t, cudaUserObject_t, unsigned, unsigned)
OFFPROF_UNSUPPORTED(cudaUserObjectCreate, cudaUserObject_t*, void*, cudaHostFn_t, unsigned, unsigned)
OFFPROF_UNSUPPORTED(cudaUserObjectRelease, cudaUserObject_t, unsigned)
OFFPROF_UNSUPPORTED(cudaDeviceGetGraphMemAttribute, int, cudaGraphMemAttributeType, void*)
OFFPROF_UNSUPPORTED(cudaDeviceSetGraphMemAttribute, int, cudaGraphMemAttributeType, void*)

OFFPROF_UNSUPPORTED(cudaLibraryLoadData, cudaLibrary_t*, const void*, cudaJitOption*, void**, unsigned,
                    cudaLibraryOption*, void**, unsigned)
OFFPROF_UNSUPPORTED(cudaLibraryLoadFromFile, cudaLibrary_t*, const char*, cudaJitOption*, void**, unsigned,
                    cudaLibraryOption*, void**, unsigned)
OFFPROF_UNSUPPORTED(cudaLibraryUnload, cudaLibrary_t)
OFFPROF_UNSUPPORTED(cudaLibraryGetGlobal, void**, std::size_t*, cudaLibrary_t, const char*)
OFFPROF_UNSUPPORTED(cudaLibraryGetManaged, void**, std::size_t*, cudaLibrary_t, const char*)
OFFPROF_UNSUPPORTED(cudaLibraryGetKernel, cudaKernel_t*, cudaLibrary_t, const char*)
OFFPROF_UNSUPPORTED(cudaLibraryGetKernelCount, unsigned*, cudaLibrary_t)
OFFPROF_UNSUPPORTED(cudaLibraryGetUnifiedFunction, void**, cudaLibrary_t, const char*)
OFFPROF_UNSUPPORTED(cudaKernelSetAttributeForDevice, cudaKernel_t, cudaFuncAttribute, int, int)

}  // extern "C"
