#include <cuda_runtime_api.h>

#include <cstddef>
#include <cstring>

#include "engine/devices/virtual_gpu/runtime/descriptor.h"
#include "engine/devices/virtual_gpu/runtime/library_handle.h"
#include "engine/devices/virtual_gpu/runtime/library_version.h"

using namespace offprof::runtime;

namespace {

constexpr LibraryVersion kVersion = {OFFPROF_CUDNN_VERSION};

int no_bytes(std::size_t* bytes, const char* what) {
  *bytes = 0;
  return unknown_size(what);
}

constexpr const char* kConvolutions = "cuDNN workspaces of convolutions";
constexpr const char* kBatchNorms = "tensors that cuDNN batch norms keep for backward";
constexpr const char* kCtc = "cuDNN workspaces of the CTC loss";

// cudnnConvolution*AlgoPerf_t: an algorithm and its requirements. The three types have the same layout.
struct AlgorithmPerformance {
  int algorithm, status;
  float time;
  std::size_t workspace_bytes;
  int determinism, math_type;
  int reserved[3];
};
static_assert(sizeof(AlgorithmPerformance) == 48, "as in cudnn_cnn.h");

int one_algorithm(int requested, int* returned, AlgorithmPerformance* results) {
  *returned = requested > 0 ? 1 : 0;
  if (requested > 0) std::memset(results, 0, sizeof *results);
  return unknown_size(kConvolutions);
}

}  // namespace

extern "C" {

std::size_t cudnnGetVersion() {
  return static_cast<std::size_t>(kVersion.number());
}
// `property` is a libraryPropertyType: MAJOR_VERSION, MINOR_VERSION or PATCH_LEVEL.
int cudnnGetProperty(int property, int* value) {
  constexpr int kParts[] = {kVersion.major, kVersion.minor, kVersion.patch};
  constexpr int kBadParam = 2000;  // CUDNN_STATUS_BAD_PARAM
  if (property < 0 || property >= 3) return kBadParam;
  *value = kParts[property];
  return 0;
}
std::size_t cudnnGetCudartVersion() {
  return CUDART_VERSION;
}
const char* cudnnGetErrorString(int status) {
  return status == 0 ? "CUDNN_STATUS_SUCCESS" : "CUDNN_STATUS_NOT_SUPPORTED";
}
void cudnnGetLastErrorString(char* text, std::size_t bytes) {
  if (bytes > 0) *text = '\0';
}

OFFPROF_LIBRARY_HANDLE(cudnnCreate, cudnnDestroy, cudnnSetStream)

int cudnnGetStream(const LibraryHandle* handle, offprof::StreamId* stream) {
  *stream = handle->stream;
  return 0;
}

// Descriptors whose values are set but never read.
int cudnnCreateActivationDescriptor(void** descriptor) {
  return create_descriptor(descriptor);
}
int cudnnCreateCTCLossDescriptor(void** descriptor) {
  return create_descriptor(descriptor);
}
int cudnnCreateConvolutionDescriptor(void** descriptor) {
  return create_descriptor(descriptor);
}
int cudnnCreatePoolingDescriptor(void** descriptor) {
  return create_descriptor(descriptor);
}
int cudnnCreateSpatialTransformerDescriptor(void** descriptor) {
  return create_descriptor(descriptor);
}
int cudnnDestroyActivationDescriptor(void* descriptor) {
  return destroy_descriptor(descriptor);
}
int cudnnDestroyCTCLossDescriptor(void* descriptor) {
  return destroy_descriptor(descriptor);
}
int cudnnDestroyConvolutionDescriptor(void* descriptor) {
  return destroy_descriptor(descriptor);
}
int cudnnDestroyPoolingDescriptor(void* descriptor) {
  return destroy_descriptor(descriptor);
}
int cudnnDestroySpatialTransformerDescriptor(void* descriptor) {
  return destroy_descriptor(descriptor);
}
int cudnnSetActivationDescriptor(void*, int, int, double) {
  return 0;
}
int cudnnSetCTCLossDescriptorEx(void*, int, int, int) {
  return 0;
}
int cudnnSetCTCLossDescriptor_v9(void*, int, int, int, int) {
  return 0;
}
int cudnnSetConvolutionNdDescriptor(void*, int, const int*, const int*, const int*, int, int) {
  return 0;
}
int cudnnSetConvolutionGroupCount(void*, int) {
  return 0;
}
int cudnnSetConvolutionMathType(void*, int) {
  return 0;
}
int cudnnSetPooling2dDescriptor(void*, int, int, int, int, int, int, int, int) {
  return 0;
}
int cudnnSetSpatialTransformerNdDescriptor(void*, int, int, int, const int*) {
  return 0;
}

// Convolutions: one algorithm per direction, without a workspace.
int cudnnGetConvolutionForwardAlgorithm_v7(void*, void*, void*, void*, void*, int requested, int* returned,
                                           AlgorithmPerformance* results) {
  return one_algorithm(requested, returned, results);
}
int cudnnGetConvolutionBackwardDataAlgorithm_v7(void*, void*, void*, void*, void*, int requested,
                                                int* returned, AlgorithmPerformance* results) {
  return one_algorithm(requested, returned, results);
}
int cudnnGetConvolutionBackwardFilterAlgorithm_v7(void*, void*, void*, void*, void*, int requested,
                                                  int* returned, AlgorithmPerformance* results) {
  return one_algorithm(requested, returned, results);
}
int cudnnFindConvolutionForwardAlgorithmEx(void*, void*, void*, void*, void*, void*, void*, void*,
                                           int requested, int* returned, AlgorithmPerformance* results, void*,
                                           std::size_t) {
  return one_algorithm(requested, returned, results);
}
int cudnnFindConvolutionBackwardDataAlgorithmEx(void*, void*, void*, void*, void*, void*, void*, void*,
                                                int requested, int* returned, AlgorithmPerformance* results,
                                                void*, std::size_t) {
  return one_algorithm(requested, returned, results);
}
int cudnnFindConvolutionBackwardFilterAlgorithmEx(void*, void*, void*, void*, void*, void*, void*, void*,
                                                  int requested, int* returned, AlgorithmPerformance* results,
                                                  void*, std::size_t) {
  return one_algorithm(requested, returned, results);
}
int cudnnGetConvolutionForwardWorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t* bytes) {
  return no_bytes(bytes, kConvolutions);
}
int cudnnGetConvolutionBackwardDataWorkspaceSize(void*, void*, void*, void*, void*, int, std::size_t* bytes) {
  return no_bytes(bytes, kConvolutions);
}
int cudnnGetConvolutionBackwardFilterWorkspaceSize(void*, void*, void*, void*, void*, int,
                                                   std::size_t* bytes) {
  return no_bytes(bytes, kConvolutions);
}

// Batch normalisation.
int cudnnGetBatchNormalizationForwardTrainingExWorkspaceSize(void*, int, int, void*, void*, void*, void*,
                                                             void*, std::size_t* bytes) {
  return no_bytes(bytes, kBatchNorms);
}
int cudnnGetBatchNormalizationBackwardExWorkspaceSize(void*, int, int, void*, void*, void*, void*, void*,
                                                      void*, void*, std::size_t* bytes) {
  return no_bytes(bytes, kBatchNorms);
}
int cudnnGetBatchNormalizationTrainingExReserveSpaceSize(void*, int, int, void*, void*, std::size_t* bytes) {
  return no_bytes(bytes, kBatchNorms);
}

// Connectionist temporal classification.
int cudnnGetCTCLossWorkspaceSize(void*, void*, void*, const int*, const int*, const int*, int, void*,
                                 std::size_t* bytes) {
  return no_bytes(bytes, kCtc);
}
int cudnnGetCTCLossWorkspaceSize_v8(void*, int, void*, void*, void*, std::size_t* bytes) {
  return no_bytes(bytes, kCtc);
}

OFFPROF_LIBRARY_CALL(cudnnCTCLoss)
OFFPROF_LIBRARY_CALL(cudnnCTCLoss_v8)
OFFPROF_LIBRARY_CALL(cudnnConvolutionForward)
OFFPROF_LIBRARY_CALL(cudnnConvolutionBackwardData)
OFFPROF_LIBRARY_CALL(cudnnConvolutionBackwardFilter)
OFFPROF_LIBRARY_CALL(cudnnConvolutionBiasActivationForward)
OFFPROF_LIBRARY_CALL(cudnnBatchNormalizationForwardTrainingEx)
OFFPROF_LIBRARY_CALL(cudnnBatchNormalizationForwardInference)
OFFPROF_LIBRARY_CALL(cudnnBatchNormalizationBackwardEx)
OFFPROF_LIBRARY_CALL(cudnnPoolingForward)
OFFPROF_LIBRARY_CALL(cudnnSpatialTfGridGeneratorForward)
OFFPROF_LIBRARY_CALL(cudnnSpatialTfGridGeneratorBackward)
OFFPROF_LIBRARY_CALL(cudnnSpatialTfSamplerForward)
OFFPROF_LIBRARY_CALL(cudnnSpatialTfSamplerBackward)

}  // extern "C"
