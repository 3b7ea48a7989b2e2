#include <cstddef>
#include <cstdint>

#include "engine/devices/virtual_gpu/runtime/cudnn_tensor.h"
#include "engine/devices/virtual_gpu/runtime/descriptor.h"
#include "engine/devices/virtual_gpu/runtime/library_handle.h"

// cuDNN's recurrent layers. PyTorch asks for the address of each weight in its weight buffer.

using namespace offprof::runtime;

namespace {

// cudnnRNNMode_t, cudnnRNNBiasMode_t, cudnnDirectionMode_t, cudnnDataType_t (cudnn_adv.h, cudnn_graph.h).
constexpr int kLstm = 2, kGru = 3;
constexpr int kNoBias = 0;
constexpr int kBidirectional = 1;
constexpr int kFloat64 = 1, kFloat16 = 2, kBfloat16 = 9;

std::size_t element_bytes(int dtype) {
  if (dtype == kFloat64) return 8;
  return dtype == kFloat16 || dtype == kBfloat16 ? 2 : 4;
}

// A matrix or a bias in the weight buffer: its size, and its offset in elements.
struct Weight {
  std::size_t offset = 0;
  int rows = 0, columns = 0;
};

struct RnnDescriptor {
  int cell = 0, bias = 0, dtype = 0;
  int input_size = 0, hidden_size = 0, projected_size = 0;
  int layers = 0, directions = 1;

  bool is_projected() const { return projected_size > 0 && projected_size < hidden_size; }
  int gates() const { return cell == kLstm ? 4 : cell == kGru ? 3 : 1; }
  int recurrent_size() const { return is_projected() ? projected_size : hidden_size; }
  int input_of(int pseudo_layer) const {
    return pseudo_layer < directions ? input_size : recurrent_size() * directions;
  }

  std::size_t input_matrix(int pseudo_layer) const {
    return static_cast<std::size_t>(hidden_size) * static_cast<std::size_t>(input_of(pseudo_layer));
  }
  std::size_t recurrent_matrix() const {
    return static_cast<std::size_t>(hidden_size) * static_cast<std::size_t>(recurrent_size());
  }
  std::size_t projection() const { return is_projected() ? recurrent_matrix() : 0; }

  // Each direction of a layer has its matrices for the input, then for the state, then the projection.
  std::size_t matrices_of(int pseudo_layer) const {
    const auto count = static_cast<std::size_t>(gates());
    return count * (input_matrix(pseudo_layer) + recurrent_matrix()) + projection();
  }
  std::size_t matrices_before(int pseudo_layer) const {
    std::size_t elements = 0;
    for (int earlier = 0; earlier < pseudo_layer; ++earlier) elements += matrices_of(earlier);
    return elements;
  }
  std::size_t biases_of_one() const {
    return bias == kNoBias ? 0
                           : static_cast<std::size_t>(2 * gates()) * static_cast<std::size_t>(hidden_size);
  }
  std::size_t elements() const {
    const int all = layers * directions;
    return matrices_before(all) + static_cast<std::size_t>(all) * biases_of_one();
  }

  // `id` numbers the gates for the input, then those for the state, then the projection.
  Weight matrix(int pseudo_layer, int id) const {
    const auto gate_count = static_cast<std::size_t>(gates());
    const auto index = static_cast<std::size_t>(id);
    const std::size_t begin = matrices_before(pseudo_layer);
    if (id < gates()) {
      return {begin + index * input_matrix(pseudo_layer), hidden_size, input_of(pseudo_layer)};
    }
    const std::size_t recurrent = begin + gate_count * input_matrix(pseudo_layer);
    if (id < 2 * gates()) {
      return {recurrent + (index - gate_count) * recurrent_matrix(), hidden_size, recurrent_size()};
    }
    return {recurrent + gate_count * recurrent_matrix(), projected_size, hidden_size};
  }
  bool has_matrix(int id) const { return id < 2 * gates() || (id == 2 * gates() && is_projected()); }

  // Biases come after all matrices.
  Weight bias_vector(int pseudo_layer, int id) const {
    const std::size_t begin =
        matrices_before(layers * directions) + static_cast<std::size_t>(pseudo_layer) * biases_of_one();
    return {begin + static_cast<std::size_t>(id) * static_cast<std::size_t>(hidden_size), hidden_size, 1};
  }
  bool has_bias(int id) const { return bias != kNoBias && id < 2 * gates(); }
};

// A caller that wants a matrix passes no descriptor for the bias, and the other way round.
void give_weight(const RnnDescriptor& rnn, const Weight& weight, const void* weights, CudnnTensor* tensor,
                 void** address) {
  if (tensor != nullptr) {
    *tensor = {.dtype = rnn.dtype,
               .sizes = {1, weight.rows, weight.columns},
               .strides = {weight.rows * weight.columns, weight.columns, 1}};
  }
  if (address == nullptr) return;
  *address = static_cast<char*>(const_cast<void*>(weights)) + weight.offset * element_bytes(rnn.dtype);
}

}  // namespace

extern "C" {

int cudnnCreateTensorDescriptor(CudnnTensor** tensor) {
  *tensor = new CudnnTensor;
  return 0;
}

int cudnnDestroyTensorDescriptor(CudnnTensor* tensor) {
  delete tensor;
  return 0;
}

int cudnnSetTensorNdDescriptor(CudnnTensor* tensor, int dtype, int dimensions, const int* sizes,
                               const int* strides) {
  *tensor = {
      .dtype = dtype, .sizes = {sizes, sizes + dimensions}, .strides = {strides, strides + dimensions}};
  return 0;
}

int cudnnGetTensorNdDescriptor(const CudnnTensor* tensor, int room, int* dtype, int* dimensions, int* sizes,
                               int* strides) {
  *dtype = tensor->dtype;
  *dimensions = static_cast<int>(tensor->sizes.size());
  give_values(tensor->sizes, room, sizes);
  give_values(tensor->strides, room, strides);
  return 0;
}

int cudnnCreateFilterDescriptor(CudnnTensor** filter) {
  return cudnnCreateTensorDescriptor(filter);
}
int cudnnDestroyFilterDescriptor(CudnnTensor* filter) {
  return cudnnDestroyTensorDescriptor(filter);
}

int cudnnSetFilterNdDescriptor(CudnnTensor* filter, int dtype, int format, int dimensions, const int* sizes) {
  *filter = {.dtype = dtype, .format = format, .sizes = {sizes, sizes + dimensions}, .strides = {}};
  return 0;
}

int cudnnGetFilterNdDescriptor(const CudnnTensor* filter, int room, int* dtype, int* format, int* dimensions,
                               int* sizes) {
  *dtype = filter->dtype;
  *format = filter->format;
  *dimensions = static_cast<int>(filter->sizes.size());
  give_values(filter->sizes, room, sizes);
  return 0;
}

// Generators of dropout masks. The size of their device state is not known.
int cudnnCreateDropoutDescriptor(void** descriptor) {
  return create_descriptor(descriptor);
}
int cudnnDestroyDropoutDescriptor(void* descriptor) {
  return destroy_descriptor(descriptor);
}
int cudnnSetDropoutDescriptor(void*, void*, float, void*, std::size_t, unsigned long long) {
  return 0;
}
int cudnnRestoreDropoutDescriptor(void*, void*, float, void*, std::size_t, unsigned long long) {
  return 0;
}
int cudnnDropoutGetStatesSize(void*, std::size_t* bytes) {
  *bytes = 0;
  return unknown_size("cuDNN dropout states");
}

int cudnnCreateRNNDataDescriptor(void** descriptor) {
  return create_descriptor(descriptor);
}
int cudnnDestroyRNNDataDescriptor(void* descriptor) {
  return destroy_descriptor(descriptor);
}
int cudnnSetRNNDataDescriptor(void*, int, int, int, int, int, const int*, void*) {
  return 0;
}

int cudnnCreateRNNDescriptor(RnnDescriptor** descriptor) {
  *descriptor = new RnnDescriptor;
  return 0;
}

int cudnnDestroyRNNDescriptor(RnnDescriptor* descriptor) {
  delete descriptor;
  return 0;
}

int cudnnSetRNNDescriptor_v8(RnnDescriptor* descriptor, int, int cell, int bias, int direction, int,
                             int dtype, int, int, std::int32_t input_size, std::int32_t hidden_size,
                             std::int32_t projected_size, std::int32_t layers, void*, std::uint32_t) {
  *descriptor = {.cell = cell,
                 .bias = bias,
                 .dtype = dtype,
                 .input_size = input_size,
                 .hidden_size = hidden_size,
                 .projected_size = projected_size,
                 .layers = layers,
                 .directions = direction == kBidirectional ? 2 : 1};
  return 0;
}

int cudnnGetRNNWeightSpaceSize(void*, const RnnDescriptor* descriptor, std::size_t* bytes) {
  *bytes = descriptor->elements() * element_bytes(descriptor->dtype);
  return 0;
}

int cudnnGetRNNWeightParams(void*, const RnnDescriptor* rnn, std::int32_t pseudo_layer, std::size_t,
                            const void* weights, std::int32_t id, CudnnTensor* matrix, void** matrix_address,
                            CudnnTensor* bias, void** bias_address) {
  if (matrix_address != nullptr) *matrix_address = nullptr;
  if (bias_address != nullptr) *bias_address = nullptr;
  if (rnn->has_matrix(id)) give_weight(*rnn, rnn->matrix(pseudo_layer, id), weights, matrix, matrix_address);
  if (rnn->has_bias(id)) give_weight(*rnn, rnn->bias_vector(pseudo_layer, id), weights, bias, bias_address);
  return 0;
}

// The bytes that a recurrent layer keeps for its backward are known only to cuDNN. They are missing from the
// results, which is reported.
int cudnnGetRNNTempSpaceSizes(void*, void*, int, void*, std::size_t* workspace_bytes,
                              std::size_t* reserve_bytes) {
  if (workspace_bytes != nullptr) *workspace_bytes = 0;
  if (reserve_bytes != nullptr) *reserve_bytes = 0;
  return unknown_size("tensors that cuDNN recurrent layers keep for backward, and their workspaces");
}

OFFPROF_LIBRARY_CALL(cudnnRNNForward)
OFFPROF_LIBRARY_CALL(cudnnRNNBackwardData_v8)
OFFPROF_LIBRARY_CALL(cudnnRNNBackwardWeights_v8)

}  // extern "C"
