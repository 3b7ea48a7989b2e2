#include "engine/devices/cuda/host_work.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <dlfcn.h>

#include <algorithm>

namespace offprof {
namespace {

/// Numbers of operators and nodes that a thread is running.
struct Running {
  int ops = 0, nodes = 0;
};
thread_local Running running;

bool requires_gradient(const c10::IValue& value) {
  if (value.isTensor()) return value.toTensor().defined() && value.toTensor().requires_grad();
  if (!value.isTensorList()) return false;
  const auto tensors = value.toTensorList();
  return std::any_of(tensors.begin(), tensors.end(),
                     [](const at::Tensor& tensor) { return tensor.defined() && tensor.requires_grad(); });
}

/// Returns true within an operator of the program, and within the engine's own work, such as an encoding:
/// Python calls no operator there.
bool is_below_autograd() {
  return c10::impl::tls_is_dispatch_key_excluded(c10::DispatchKey::AutogradFunctionality) &&
         !c10::InferenceMode::is_enabled();
}

bool is_recorded(const at::RecordFunction& op) {
  if (!c10::GradMode::is_enabled()) return false;
  const auto inputs = op.inputs();
  return std::any_of(inputs.begin(), inputs.end(), requires_gradient);
}

}  // namespace

bool is_python_process() {
  using IsInitialized = int();
  auto* const is_initialized = reinterpret_cast<IsInitialized*>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  return is_initialized != nullptr && is_initialized() != 0;
}

void HostWorkTeller::begin_op(const at::RecordFunction& op) {
  const bool is_outermost = running.ops++ == 0 && running.nodes == 0 && !is_below_autograd();
  if (running.nodes == 0 && std::this_thread::get_id() != program_) return;
  gpu_.spend_host_time(HostWork::kOperator);
  if (is_outermost) gpu_.spend_host_time(HostWork::kPythonCall);
  if (is_recorded(op)) gpu_.spend_host_time(HostWork::kRecording);
}

void HostWorkTeller::end_op() {
  --running.ops;
}

void HostWorkTeller::begin_node() {
  ++running.nodes;
  gpu_.spend_host_time(HostWork::kNode);
}

void HostWorkTeller::end_node() {
  --running.nodes;
}

}  // namespace offprof
