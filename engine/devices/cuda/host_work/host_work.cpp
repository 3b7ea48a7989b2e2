#include "engine/devices/cuda/host_work/host_work.h"

#include <ATen/core/Tensor.h>
#include <ATen/core/grad_mode.h>
#include <ATen/core/ivalue.h>
#include <c10/core/InferenceMode.h>
#include <c10/core/impl/LocalDispatchKeySet.h>
#include <dlfcn.h>

#include <algorithm>
#include <array>
#include <string_view>

namespace offprof {
namespace {

/// Numbers of operators and nodes that a thread is running.
struct Running {
  int ops = 0, nodes = 0;
};
thread_local Running running;
thread_local ToldOperators told_on_thread;

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

/// Returns how many random numbers the operator draws on the host. randn, rand, randint and dropout call one
/// of these. All write to their first argument.
std::int64_t random_numbers_of(const at::RecordFunction& op) {
  constexpr auto kDrawing = std::to_array<std::string_view>(
      {"aten::bernoulli_", "aten::cauchy_", "aten::exponential_", "aten::geometric_", "aten::log_normal_",
       "aten::normal_", "aten::random_", "aten::uniform_"});
  const auto inputs = op.inputs();
  if (inputs.empty() || !is_tensor_on(at::kCPU, inputs.front())) return 0;
  const bool draws = std::ranges::find(kDrawing, std::string_view(op.name())) != kDrawing.end();
  return draws ? inputs.front().toTensor().numel() : 0;
}

}  // namespace

bool is_python_process() {
  using IsInitialized = int();
  auto* const is_initialized = reinterpret_cast<IsInitialized*>(dlsym(RTLD_DEFAULT, "Py_IsInitialized"));
  return is_initialized != nullptr && is_initialized() != 0;
}

bool is_tensor_on(c10::DeviceType type, const c10::IValue& value) {
  return value.isTensor() && value.toTensor().defined() && value.toTensor().device().type() == type;
}

void HostWorkTeller::begin_op(const at::RecordFunction& op) {
  const bool is_outermost = running.ops++ == 0 && running.nodes == 0 && !is_below_autograd();
  if (!counts_this_thread()) return;
  spend({1, is_recorded(op) ? 1 : 0});
  if (is_outermost) gpu_.spend_host_time(HostWork::kPythonCall, 1);
  if (const std::int64_t drawn = random_numbers_of(op)) gpu_.spend_host_time(HostWork::kRandomNumber, drawn);
}

void HostWorkTeller::end_op() {
  --running.ops;
}

ToldOperators HostWorkTeller::told() {
  return told_on_thread;
}

void HostWorkTeller::add(const ToldOperators& operators) {
  if (counts_this_thread()) spend(operators);
}

void HostWorkTeller::spend(const ToldOperators& operators) {
  told_on_thread.operators += operators.operators;
  told_on_thread.recordings += operators.recordings;
  if (operators.operators > 0) gpu_.spend_host_time(HostWork::kOperator, operators.operators);
  if (operators.recordings > 0) gpu_.spend_host_time(HostWork::kRecording, operators.recordings);
}

bool HostWorkTeller::counts_this_thread() const {
  return running.nodes > 0 || std::this_thread::get_id() == program_;
}

void HostWorkTeller::begin_node() {
  ++running.nodes;
  PythonCalls::begin_node();
  gpu_.spend_host_time(HostWork::kNode, 1);
}

void HostWorkTeller::end_node() {
  PythonCalls::end_node();
  --running.nodes;
}

}  // namespace offprof
