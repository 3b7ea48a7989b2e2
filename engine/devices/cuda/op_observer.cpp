#include "engine/devices/cuda/op_observer.h"

#include <ATen/Context.h>
#include <ATen/core/Tensor.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <span>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "engine/torch/dtype_name.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Current observer. at::RecordFunction calls plain functions, which find the observer here.
OpObserver* active_observer = nullptr;
thread_local int open_moves = 0;  // see note_moves

constexpr std::array<std::string_view, 2> kReadsValues = {"aten::_local_scalar_dense", "aten::equal"};

/// Operators whose result shape depends on values. Indexing with a mask also calls `nonzero`.
constexpr std::array<std::string_view, 6> kShapesByValues = {"aten::nonzero",    "aten::masked_select",
                                                             "aten::_unique",    "aten::_unique2",
                                                             "aten::unique_dim", "aten::unique_consecutive"};

bool contains(std::span<const std::string_view> names, std::string_view name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

/// Traits of all operators of a name.
struct NameTraits {
  OpKind kind = OpKind::kMovesMemory;
  bool reads_values = false, has_shape_by_values = false;
  bool is_copy = false, is_attention = false, is_convolution_backward = false;
};

NameTraits traits_of_name(std::string_view name) {
  return {.kind = kind_of(name),
          .reads_values = contains(kReadsValues, name),
          .has_shape_by_values = contains(kShapesByValues, name),
          .is_copy = name == "aten::copy_",
          .is_attention = name.find("_attention") != std::string_view::npos,
          .is_convolution_backward = name == "aten::convolution_backward"};
}

/// Returns the traits of the operator, of which a program calls millions. They are looked up by the address
/// of the name, which is always the same for operators of the dispatcher.
NameTraits traits_of(const at::RecordFunction& op) {
  thread_local std::unordered_map<const char*, NameTraits> by_address;
  const char* const name = op.name();
  if (const auto found = by_address.find(name); found != by_address.end()) return found->second;
  const NameTraits traits = traits_of_name(name);
  if (op.operator_name()) by_address.emplace(name, traits);
  return traits;
}

/// Returns the number of elements in memory: 1 if all are one element that was broadcast, such as the
/// gradient of a sum. Other broadcast tensors count in full: a policy may bring a saved one back without the
/// broadcast, and then times would depend on the policy.
std::int64_t elements_in_memory(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided || tensor.numel() == 0) return tensor.numel();
  for (std::int64_t i = 0; i < tensor.dim(); ++i)
    if (tensor.size(i) > 1 && tensor.stride(i) != 0) return tensor.numel();
  return 1;
}

/// Returns the distance of elements along the last dimension that has several.
Bytes step_bytes(const at::Tensor& tensor) {
  if (tensor.layout() != at::kStrided) return 0;
  for (std::int64_t i = tensor.dim(); i-- > 0;)
    if (tensor.size(i) > 1) return tensor.stride(i) * static_cast<Bytes>(tensor.element_size());
  return static_cast<Bytes>(tensor.element_size());
}

void add_operand(OpCall& call, const at::Tensor& tensor) {
  if (!tensor.defined()) return;
  OperandShape& operand = call.operands.emplace_back();
  operand.dtype = dtype_name(tensor.scalar_type());
  operand.sizes = tensor.sizes().vec();
  operand.element_bytes = static_cast<Bytes>(tensor.element_size());
  operand.bytes = elements_in_memory(tensor) * operand.element_bytes;
  operand.step_bytes = step_bytes(tensor);
}

void add_operands(OpCall& call, const c10::IValue& value) {
  if (value.isTensor()) {
    add_operand(call, value.toTensor());
  } else if (value.isTensorList()) {
    const std::vector<at::Tensor> tensors = value.toTensorVector();
    if (call.list_length == 0) call.list_length = tensors.size();
    for (const at::Tensor& tensor : tensors) add_operand(call, tensor);
  }
}

/// Returns true if both tensors have the same elements, though they may be different objects: unpacked saved
/// tensors are.
bool have_the_same_elements(const at::Tensor& a, const at::Tensor& b) {
  return a.defined() && b.defined() && a.has_storage() && b.has_storage() && a.is_alias_of(b) &&
         a.storage_offset() == b.storage_offset() && a.sizes() == b.sizes() && a.strides() == b.strides();
}

/// Returns true if the operator reads what it has read as the argument before.
bool reads_again(const at::RecordFunction& op, std::size_t argument) {
  const auto inputs = op.inputs();
  if (argument == 0 || !inputs[argument].isTensor() || !inputs[argument - 1].isTensor()) return false;
  const bool is_result =
      argument + 1 == inputs.size() && std::string_view(op.overload_name()).ends_with("out");
  return !is_result && have_the_same_elements(inputs[argument].toTensor(), inputs[argument - 1].toTensor());
}

/// Notes which positions attention leaves out. The arguments are those of native_functions.yaml.
void note_mask(const at::RecordFunction& op, OpCall& call) {
  constexpr std::int64_t kNoMask = 0;  // at::sdp::CustomMaskType
  const auto schema = op.operator_schema();
  if (!schema) return;
  const auto inputs = op.inputs();
  for (std::size_t i = 0; i < std::min(inputs.size(), schema->arguments().size()); ++i) {
    const std::string& name = schema->arguments()[i].name();
    if (name == "is_causal" && inputs[i].isBool()) call.is_causal = inputs[i].toBool();
    if (name == "custom_mask_type" && inputs[i].isInt()) call.is_causal = inputs[i].toInt() != kNoMask;
    if (name == "attn_bias" && inputs[i].isTensor())
      call.has_mask = inputs[i].toTensor().defined() && inputs[i].toTensor().numel() > 0;
  }
}

/// Returns true if the program allows tf32 for a product or convolution of float32 operands
/// (torch.backends.cuda.matmul, torch.backends.cudnn).
bool uses_tf32(const OpCall& call, OpKind kind) {
  if (call.operands.empty() || call.operands.front().dtype != "float32") return false;
  if (kind != OpKind::kProduct && kind != OpKind::kConvolution) return false;
  const auto op = kind == OpKind::kProduct ? at::Float32Op::MATMUL : at::Float32Op::CONV;
  return at::globalContext().float32Precision(at::Float32Backend::CUDA, op) == at::Float32Precision::TF32;
}

/// Returns of how many of input and weight a convolution's backward is asked for the gradient.
double convolution_gradients(const at::RecordFunction& op) {
  constexpr std::size_t kMask = 10;  // output_mask, in native_functions.yaml
  if (op.inputs().size() <= kMask) return 2;
  const c10::IValue& mask = op.inputs()[kMask];
  if (!mask.isBoolList() || mask.toBoolList().size() < 2) return 2;
  return (mask.toBoolList()[0] ? 1.0 : 0.0) + (mask.toBoolList()[1] ? 1.0 : 0.0);
}

}  // namespace

OpCall describe_call(const at::RecordFunction& op) {
  const NameTraits traits = traits_of(op);
  OpCall call;
  call.name = op.name();
  const auto inputs = op.inputs();
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    add_operands(call, inputs[i]);
    if (reads_again(op, i)) call.operands.back().bytes = 0;
  }
  if (traits.is_attention) note_mask(op, call);
  call.uses_tf32 = uses_tf32(call, traits.kind);
  if (traits.is_convolution_backward) call.gradients = convolution_gradients(op);
  return call;
}

bool reads_back(const at::RecordFunction& op) {
  const auto inputs = op.inputs();
  const NameTraits traits = traits_of(op);
  if (inputs.size() >= 2 && traits.is_copy)
    return open_moves == 0 && is_tensor_on(at::kCPU, inputs[0]) && is_tensor_on(at::kCUDA, inputs[1]);
  return traits.reads_values && !inputs.empty() && is_tensor_on(at::kCUDA, inputs[0]);
}

void note_moves(bool are_moves) {
  open_moves += are_moves ? 1 : -1;
}

bool has_shape_by_values(const at::RecordFunction& op) {
  const auto inputs = op.inputs();
  return traits_of(op).has_shape_by_values && !inputs.empty() && is_tensor_on(at::kCUDA, inputs[0]);
}

OpObserver::OpObserver(VirtualGpu& gpu) : gpu_(gpu), callback_(0), node_callback_(0) {
  OFFPROF_CHECK(active_observer == nullptr);
  active_observer = this;
  if (is_python_process()) {
    host_work_.emplace(gpu);
    values_.emplace(gpu);
  }
  node_callback_ =
      at::addThreadLocalCallback(at::RecordFunctionCallback(&OpObserver::node_begins, &OpObserver::node_ends)
                                     .scopes({at::RecordScope::BACKWARD_FUNCTION}));
  callback_ = at::addThreadLocalCallback(at::RecordFunctionCallback(&OpObserver::begins, &OpObserver::ends)
                                             .needsInputs(true)
                                             .needsOutputs(true)
                                             .scopes({at::RecordScope::FUNCTION}));
}

OpObserver::~OpObserver() {
  at::removeCallback(callback_);
  at::removeCallback(node_callback_);
  active_observer = nullptr;
}

std::set<std::string> OpObserver::take_value_reads() {
  const std::lock_guard turn(mutex_);
  return std::exchange(value_reads_, {});
}

std::set<std::string> OpObserver::take_shapes_by_values() {
  const std::lock_guard turn(mutex_);
  return std::exchange(shapes_by_values_, {});
}

std::unique_ptr<at::ObserverContext> OpObserver::begins(const at::RecordFunction& op) {
  if (active_observer == nullptr) return nullptr;
  auto context = std::make_unique<ObservedOp>(op, active_observer->gpu_, active_observer->values(),
                                              active_observer->host_work_.has_value());
  if (context->has_unknown_shape(op)) active_observer->note(op.name(), active_observer->shapes_by_values_);
  active_observer->size_.begin_op(op);
  if (active_observer->host_work_) active_observer->host_work_->begin_op(op);
  active_observer->gpu_.begin_op(context->call());
  return context;
}

void OpObserver::ends(const at::RecordFunction& op, at::ObserverContext* context) {
  if (context == nullptr || active_observer == nullptr) return;
  const auto& observed = static_cast<const ObservedOp&>(*context);
  if (observed.has_read_unknown_values(active_observer->gpu_))
    active_observer->note(observed.call().name, active_observer->value_reads_);
  if (KnownValues* const values = active_observer->values()) values->end_op(observed.known(), op);
  active_observer->gpu_.end_op();
  if (active_observer->host_work_) active_observer->host_work_->end_op();
}

std::unique_ptr<at::ObserverContext> OpObserver::node_begins(const at::RecordFunction&) {
  if (active_observer != nullptr && active_observer->host_work_) active_observer->host_work_->begin_node();
  return StepSizeCounter::begin_node();
}

void OpObserver::node_ends(const at::RecordFunction&, at::ObserverContext*) {
  if (active_observer != nullptr && active_observer->host_work_) active_observer->host_work_->end_node();
}

void OpObserver::note(std::string_view op, std::set<std::string>& names) {
  const std::lock_guard turn(mutex_);
  names.emplace(op);
}

}  // namespace offprof
