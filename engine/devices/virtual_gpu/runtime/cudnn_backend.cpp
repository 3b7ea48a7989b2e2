#include <cstddef>
#include <cstdint>
#include <cstring>

#include "engine/devices/virtual_gpu/runtime/library_handle.h"

// cuDNN's graph API. For every request there is one engine with one configuration, which needs no workspace.
// The choice and the workspace of the real heuristics are not known.

using namespace offprof::runtime;

namespace {

// The values in use of cudnnBackendAttributeName_t and cudnnBackendAttributeType_t (cudnn_graph.h).
constexpr int kHeuristicResults = 202;
constexpr int kConfigurationEngine = 300;
constexpr int kPlanWorkspaceBytes = 402;
constexpr int kPlanJson = 405;
constexpr int kTypeInt64 = 3;
constexpr int kTypeDescriptor = 15;
constexpr int kTypeInt32 = 23;

// A descriptor holds only its type, since the other values are never read back.
struct Descriptor {
  int type;
};

bool has_one_value(int name, int type) {
  if (type == kTypeDescriptor) return name == kHeuristicResults || name == kConfigurationEngine;
  return type == kTypeInt64 || type == kTypeInt32 || name == kPlanJson;
}

// The caller creates the descriptors. Numbers are zero: the first engine, no workspace.
void give_value(int type, void* value) {
  if (type == kTypeInt64) std::memset(value, 0, sizeof(std::int64_t));
  if (type == kTypeInt32) std::memset(value, 0, sizeof(std::int32_t));
}

}  // namespace

extern "C" {

int cudnnBackendCreateDescriptor(int type, Descriptor** descriptor) {
  *descriptor = new Descriptor{type};
  return 0;
}

int cudnnBackendDestroyDescriptor(Descriptor* descriptor) {
  delete descriptor;
  return 0;
}

int cudnnBackendSetAttribute(Descriptor*, int, int, std::int64_t, const void*) {
  return 0;
}

int cudnnBackendFinalize(Descriptor*) {
  return 0;
}

int cudnnBackendGetAttribute(const Descriptor*, int name, int type, std::int64_t requested,
                             std::int64_t* count, void* values) {
  const bool has_value = has_one_value(name, type);
  if (count != nullptr) *count = has_value ? 1 : 0;
  if (!has_value || requested < 1 || values == nullptr) return 0;
  if (name == kPlanJson) {
    *static_cast<char*>(values) = '\0';
  } else {
    give_value(type, values);
    if (name == kPlanWorkspaceBytes) unknown_size("cuDNN workspaces of plans for convolution and attention");
  }
  return 0;
}

int cudnnBackendExecute(const LibraryHandle* handle, Descriptor*, Descriptor*) {
  launch_library_call(handle->stream, "cudnnBackendExecute");
  return 0;
}

}  // extern "C"
