#include "engine/devices/cuda/known_values.h"

#include <ATen/EmptyTensor.h>
#include <ATen/Functions.h>
#include <ATen/core/function_schema.h>
#include <ATen/core/ivalue.h>

#include <algorithm>
#include <array>
#include <cstring>
#include <string_view>

#include "engine/devices/cuda/router_choice.h"
#include "engine/devices/cuda/values_on_cpu.h"
#include "engine/devices/virtual_gpu/values/small_values.h"

namespace offprof {
namespace {

template <std::size_t N>
bool is_one_of(std::string_view name, const std::array<std::string_view, N>& names) {
  return std::ranges::find(names, name) != names.end();
}

/// Operators that read the number of elements they find.
constexpr std::array<std::string_view, 5> kFindElements = {"aten::nonzero", "aten::_unique", "aten::_unique2",
                                                           "aten::unique_dim", "aten::unique_consecutive"};
/// Operators that overwrite all of their first operand.
constexpr std::array<std::string_view, 3> kOverwrite = {"aten::copy_", "aten::fill_", "aten::zero_"};
/// Operators that change a tensor but no contents.
constexpr std::array<std::string_view, 3> kKeepContents = {"aten::set_", "aten::resize_",
                                                           "aten::record_stream"};

bool covers_its_storage(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() && tensor.nbytes() == tensor.storage().nbytes();
}

const void* begin_of(const at::Tensor& tensor) {
  return tensor.storage().data();
}

/// Calls `use` for each defined tensor in the value.
template <typename Use>
void for_each_tensor(const c10::IValue& value, const Use& use) {
  if (value.isTensor()) {
    if (value.toTensor().defined()) use(value.toTensor());
  } else if (value.isList()) {
    for (const c10::IValue& item : value.toListRef()) for_each_tensor(item, use);
  }
}

/// Returns true if the operator's results are views of its operands.
bool returns_views(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.returns(), [](const c10::Argument& result) {
    return result.alias_info() != nullptr && !result.alias_info()->isWrite();
  });
}

/// Returns true if the operator's own kernels write its results. Others call operators for that.
bool has_kernels(const c10::OperatorHandle& handle, std::string_view name) {
  return handle.hasKernelForDispatchKey(c10::DispatchKey::CUDA) || name == "aten::copy_";
}

/// Returns the bytes from the tensor's first element to its last.
Bytes extent_of(const at::Tensor& tensor) {
  return static_cast<Bytes>(
      at::detail::computeStorageNbytes(tensor.sizes(), tensor.strides(), tensor.itemsize()));
}

/// Returns true if other ranks may have sent the contents: integers, which programs decide by.
bool may_be_of_peers(const at::Tensor& tensor) {
  return static_cast<Bytes>(tensor.storage().nbytes()) <= SmallValues::kLargest &&
         at::isIntegralType(tensor.scalar_type(), true);
}

/// The CPU has no histogram of integers.
void histogram_of_integers(std::vector<c10::IValue>& stack) {
  const at::Tensor numbers = stack[0].toTensor();
  stack = {at::histc(numbers.to(at::kDouble), stack[1].toInt(), stack[2].toScalar(), stack[3].toScalar())
               .to(numbers.scalar_type())};
}

}  // namespace

const KnownValues::Kind& KnownValues::kind_of(const at::RecordFunction& op) {
  static const Kind kNoOperator;
  if (const auto found = kinds_.find(op.name()); found != kinds_.end()) return found->second;
  const auto full_name = op.operator_name();
  if (!full_name) return kNoOperator;
  const auto handle = c10::Dispatcher::singleton().findSchema(*full_name);
  if (!handle) return kNoOperator;
  Kind& kind = kinds_[op.name()];
  kind.handle = handle;
  const std::string_view name = full_name->name;
  const c10::FunctionSchema& schema = kind.handle->schema();
  kind.is_collective = name.starts_with("c10d::");
  kind.is_of_torch = name.starts_with("aten::");
  kind.writes_results = !kind.is_collective && !returns_views(schema) && !is_one_of(name, kKeepContents) &&
                        !name.starts_with("_c10d_functional") &&  // calls operators of c10d
                        (!kind.is_of_torch || has_kernels(*kind.handle, name));
  kind.is_random = kind.handle->hasTag(at::Tag::nondeterministic_seeded);
  kind.finds_elements = is_one_of(name, kFindElements);
  for (const c10::Argument& argument : schema.arguments()) {
    const bool is_written = argument.alias_info() != nullptr && argument.alias_info()->isWrite();
    kind.uses.push_back(argument.is_out() ? Use::kIsResult : is_written ? Use::kChanges : Use::kReads);
  }
  if (is_one_of(name, kOverwrite)) kind.uses.front() = Use::kOverwrites;
  kind.has_out = std::ranges::find(kind.uses, Use::kIsResult) != kind.uses.end();
  return kind;
}

KnownValues::Operator KnownValues::begin_op(const at::RecordFunction& op) {
  Operator known;
  const auto inputs = op.inputs();
  const std::lock_guard turn(mutex_);
  const Kind& kind = kind_of(op);
  if ((!kind.writes_results && !kind.is_collective) || inputs.size() != kind.uses.size()) return known;
  bool has_wrappers = false, is_on_device = false, may_be_known = true;
  for (std::size_t i = 0; i < inputs.size(); ++i)
    for_each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (!tensor.is_cuda()) return;
      is_on_device = true;
      has_wrappers = has_wrappers || !is_plain(tensor);
      if (has_wrappers) return;
      may_be_known = may_be_known && may_know(tensor, kind.uses[i]);
    });
  if (has_wrappers) return {};
  forget_after_launches();
  known.sets_results = kind.writes_results;
  if (!is_on_device) return known;
  const std::string_view name = op.name();
  if (kind.is_collective) {
    gpu_may_know_ = true;
    for (const c10::IValue& input : inputs)
      for_each_tensor(input, [&](const at::Tensor& tensor) {
        if (tensor.is_cuda()) hand_over(tensor);
      });
  } else if (name == "aten::_local_scalar_dense") {
    known.knows_operands = find(inputs[0].toTensor()) != nullptr;
    hand_over(inputs[0].toTensor());
  } else if (name == "aten::copy_" && inputs[0].toTensor().is_cpu()) {
    begin_copy_to_host(known, inputs[0].toTensor(), inputs[1].toTensor());
  } else {
    if (gpu_.assumes_balanced_experts()) known.results = balanced_choices(op);
    if (known.results.empty() && may_be_known && kind.is_of_torch && !kind.is_random)
      compute(known, kind, op);
  }
  if (known.knows_operands && kind.finds_elements) {
    gpu_.answer_reads(known.results.at(0).size(0));
    known.answers_reads = true;
  }
  forget_written(kind, inputs);
  return known;
}

/// Forgets what an operator writes, before it does: copies within it may bring contents that the GPU knows.
void KnownValues::forget_written(const Kind& kind, c10::ArrayRef<const c10::IValue> inputs) {
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    if (kind.uses[i] == Use::kReads && !kind.is_collective) continue;
    for_each_tensor(inputs[i], [&](const at::Tensor& tensor) {
      if (!tensor.is_cuda()) return;
      forget(begin_of(tensor));
      // The GPU knows what a collective gives and brings.
      if (!gpu_may_know_ || kind.is_collective || tensor.storage().nbytes() == 0) return;
      if (kind.uses[i] == Use::kIsResult) {  // may be resized
        gpu_.forget_values(begin_of(tensor), static_cast<Bytes>(tensor.storage().nbytes()));
      } else {
        gpu_.forget_values(tensor.const_data_ptr(), extent_of(tensor));
      }
    });
  }
}

void KnownValues::begin_copy_to_host(Operator& known, const at::Tensor& to, const at::Tensor& from) {
  const OnlyTheCpu guard;
  known.host = to;
  known.host_contents = contents_of(from);
  known.knows_operands = known.host_contents.defined();
}

void KnownValues::end_copy_to_host(const Operator& known) {
  if (known.knows_operands) {
    const OnlyTheCpu guard;
    known.host.copy_(known.host_contents);
  }
  if (!is_plain(known.host)) return;
  unknown_on_host_.erase(begin_of(known.host));
  if (!known.knows_operands)
    unknown_on_host_.emplace(begin_of(known.host), known.host.storage().getWeakStorageImpl());
}

void KnownValues::hand_over(const at::Tensor& tensor) {
  if (tensor.numel() == 0 || static_cast<Bytes>(tensor.nbytes()) > SmallValues::kLargest ||
      !tensor.is_contiguous() || !contents_.contains(begin_of(tensor)))
    return;
  const OnlyTheCpu guard;
  const at::Tensor contents = contents_of(tensor);
  if (!contents.defined()) return;
  const auto* const bytes = static_cast<const char*>(contents.const_data_ptr());
  gpu_may_know_ = true;
  gpu_.set_values(tensor.const_data_ptr(), {bytes, bytes + contents.nbytes()});
}

void KnownValues::compute(Operator& known, const Kind& kind, const at::RecordFunction& op) {
  const OnlyTheCpu guard;
  auto stack = operands_on_cpu(known, kind, op);
  if (!stack) return known.changed.clear();
  try {
    if (std::string_view(op.name()) == "aten::histc" && !kind.has_out &&
        at::isIntegralType(stack->at(0).toTensor().scalar_type(), true)) {
      histogram_of_integers(*stack);
    } else {
      kind.handle->callBoxed(*stack);
    }
  } catch (const std::exception&) {  // the CPU lacks the operator, or refuses the operands
    return known.changed.clear();
  }
  known.knows_operands = true;
  const auto& returns = kind.handle->schema().returns();
  known.results.resize(returns.size());
  for (std::size_t i = 0; i < std::min(returns.size(), stack->size()); ++i)
    if ((*stack)[i].isTensor() && (kind.has_out || returns[i].alias_info() == nullptr))
      known.results[i] = (*stack)[i].toTensor();
}

std::optional<KnownValues::Stack> KnownValues::operands_on_cpu(Operator& known, const Kind& kind,
                                                               const at::RecordFunction& op) {
  const auto inputs = op.inputs();
  Stack stack;
  stack.reserve(inputs.size());
  for (std::size_t i = 0; i < inputs.size(); ++i) {
    auto operand = operand_on_cpu(known, inputs[i], kind.uses[i]);
    if (!operand) return std::nullopt;
    stack.push_back(*std::move(operand));
  }
  return stack;
}

std::optional<c10::IValue> KnownValues::operand_on_cpu(Operator& known, const c10::IValue& value, Use use) {
  if (value.isTensor()) {
    const at::Tensor tensor = tensor_on_cpu(known, value.toTensor(), use);
    if (value.toTensor().defined() && !tensor.defined()) return std::nullopt;
    return tensor;
  }
  if (value.isTensorList()) {
    c10::List<at::Tensor> list;
    for (const at::Tensor& item : value.toTensorVector()) {
      list.push_back(tensor_on_cpu(known, item, use));
      if (item.defined() && !list.get(list.size() - 1).defined()) return std::nullopt;
    }
    return list;
  }
  if (value.isOptionalTensorList()) {
    c10::List<std::optional<at::Tensor>> list;
    for (const c10::IValue& item : value.toListRef()) {
      if (!item.isTensor() || !item.toTensor().defined()) {
        list.push_back(std::nullopt);
        continue;
      }
      const at::Tensor tensor = tensor_on_cpu(known, item.toTensor(), use);
      if (!tensor.defined()) return std::nullopt;
      list.push_back(tensor);
    }
    return list;
  }
  if (value.isDevice()) return c10::IValue(c10::Device(at::kCPU));
  if (value.isStorage() || value.isGenerator() || value.isObject() || value.isCapsule() || value.isPyObject())
    return std::nullopt;
  return value;
}

at::Tensor KnownValues::tensor_on_cpu(Operator& known, const at::Tensor& tensor, Use use) {
  if (!tensor.defined()) return tensor;
  if (!tensor.is_cuda()) {
    const bool is_known =
        use == Use::kReads && tensor.is_cpu() && is_plain(tensor) && !is_unknown_on_host(tensor);
    return is_known ? tensor : at::Tensor();
  }
  if (use == Use::kReads) return contents_of(tensor);
  const bool is_whole = tensor.numel() == 0 || covers_its_storage(tensor);
  if (use == Use::kIsResult && is_whole) return at::empty({0}, at::TensorOptions(tensor.scalar_type()));
  if (is_too_large(tensor)) return {};
  if (tensor.storage().nbytes() == 0)
    return at::empty(tensor.sizes(), at::TensorOptions(tensor.scalar_type()));
  const auto changed =
      std::ranges::find(known.changed, begin_of(tensor), [](const auto& entry) { return entry.first; });
  if (changed != known.changed.end()) return view_like(changed->second.on_cpu, tensor);
  const c10::Storage* const before = find(tensor);
  if (before == nullptr && !(use == Use::kOverwrites && is_whole)) return {};
  Contents contents{before == nullptr ? new_storage(tensor.storage().nbytes()) : copy_of(*before),
                    tensor.storage().getWeakStorageImpl()};
  const at::Tensor view = view_like(contents.on_cpu, tensor);
  known.changed.emplace_back(begin_of(tensor), std::move(contents));
  return view;
}

void KnownValues::end_op(const Operator& known, const at::RecordFunction& op) {
  if (!known.sets_results) return;
  const std::lock_guard turn(mutex_);
  if (known.answers_reads) gpu_.answer_reads(std::nullopt);
  for (const auto& [storage, contents] : known.changed) set(storage, contents);
  if (known.host.defined()) return end_copy_to_host(known);
  const std::vector<c10::IValue>& outputs = op.outputs();
  for (std::size_t i = 0; i < outputs.size(); ++i) {
    const at::Tensor contents = i < known.results.size() ? known.results[i] : at::Tensor();
    for_each_tensor(outputs[i], [&](const at::Tensor& output) {
      const bool is_changed = std::ranges::any_of(known.changed, [&](const auto& changed) {
        return output.is_cuda() && changed.first == begin_of(output);
      });
      if (output.is_cuda() && is_plain(output) && !is_changed) store(output, contents);
    });
  }
}

void KnownValues::copied_out(const void* host, const void* device) {
  const std::lock_guard turn(mutex_);
  forget_after_launches();
  const auto found = contents_.find(device);
  const bool is_known = found != contents_.end() && (!found->second.of || !found->second.of->expired());
  if (is_known) copied_out_[host] = found->second.on_cpu;
  if (!is_known) copied_out_.erase(host);
}

void KnownValues::copied_out(const void* host, const at::Tensor& from) {
  const std::lock_guard turn(mutex_);
  const OnlyTheCpu guard;
  forget_after_launches();
  const at::Tensor contents = is_plain(from) ? contents_of(from) : at::Tensor();
  if (!contents.defined()) {
    copied_out_.erase(host);
    return;
  }
  copied_out_[host] = contents.clone(at::MemoryFormat::Preserve).storage();
}

void KnownValues::copied_back(const void* device, const void* host) {
  const std::lock_guard turn(mutex_);
  const auto found = copied_out_.find(host);
  if (found == copied_out_.end()) return forget(device);
  set(device, {found->second});
}

bool KnownValues::is_too_large(const at::Tensor& tensor) const {
  const bool has_routers = gpu_.assumes_balanced_experts();
  const Bytes of_integers = has_routers ? kLargestIntegersOfRouters : kLargestOfIntegers;
  const Bytes of_floats = has_routers ? kLargestFloatsOfRouters : kLargestOfFloats;
  return static_cast<Bytes>(tensor.storage().nbytes()) >
         (at::isIntegralType(tensor.scalar_type(), true) ? of_integers : of_floats);
}

void KnownValues::forget_after_launches() {
  const std::int64_t launches = gpu_.launches_outside_operators();
  if (launches == launches_outside_) return;
  launches_outside_ = launches;
  contents_.clear();
  bytes_ = bytes_after_sweep_ = 0;
}

/// Returns false if the operand is not known, or will not be: before anything costly is tried.
bool KnownValues::may_know(const at::Tensor& tensor, Use use) const {
  if (use == Use::kIsResult) return true;
  if (use == Use::kOverwrites) return !is_too_large(tensor);
  return tensor.numel() == 0 || contents_.contains(begin_of(tensor)) ||
         (gpu_may_know_ && may_be_of_peers(tensor));
}

const c10::Storage* KnownValues::find(const at::Tensor& tensor) {
  const auto found = contents_.find(begin_of(tensor));
  if (found != contents_.end()) {
    Contents& contents = found->second;
    if (!contents.of) contents.of = tensor.storage().getWeakStorageImpl();
    if (contents.of->lock().get() == tensor.storage().unsafeGetStorageImpl()) return &contents.on_cpu;
    forget(begin_of(tensor));
  }
  if (!gpu_may_know_ || !may_be_of_peers(tensor)) return nullptr;
  const std::vector<char> read =
      gpu_.read_values(begin_of(tensor), static_cast<Bytes>(tensor.storage().nbytes()));
  if (read.empty()) return nullptr;
  const c10::Storage storage = new_storage(read.size());
  std::memcpy(storage.mutable_data(), read.data(), read.size());
  set(begin_of(tensor), {storage, tensor.storage().getWeakStorageImpl()});
  return &contents_.at(begin_of(tensor)).on_cpu;
}

at::Tensor KnownValues::contents_of(const at::Tensor& tensor) {
  if (tensor.numel() == 0)
    return at::empty_strided(tensor.sizes(), tensor.strides(), at::TensorOptions(tensor.scalar_type()));
  const c10::Storage* const storage = find(tensor);
  return storage == nullptr ? at::Tensor() : view_like(*storage, tensor);
}

bool KnownValues::is_unknown_on_host(const at::Tensor& tensor) {
  if (unknown_on_host_.empty()) return false;
  const auto found = unknown_on_host_.find(begin_of(tensor));
  if (found == unknown_on_host_.end()) return false;
  if (!found->second.expired()) return true;
  unknown_on_host_.erase(found);
  return false;
}

void KnownValues::set(const void* storage, Contents contents) {
  forget(storage);
  bytes_ += static_cast<Bytes>(contents.on_cpu.nbytes());
  contents_.emplace(storage, std::move(contents));
  constexpr Bytes kSweepBytes = 64 * kMiB;
  if (bytes_ > 2 * bytes_after_sweep_ + kSweepBytes) forget_freed();
}

void KnownValues::forget(const void* storage) {
  const auto found = contents_.find(storage);
  if (found == contents_.end()) return;
  bytes_ -= static_cast<Bytes>(found->second.on_cpu.nbytes());
  contents_.erase(found);
}

void KnownValues::forget_freed() {
  std::erase_if(contents_, [&](const auto& entry) {
    const Contents& contents = entry.second;
    if (!contents.of || !contents.of->expired()) return false;
    bytes_ -= static_cast<Bytes>(contents.on_cpu.nbytes());
    return true;
  });
  std::erase_if(unknown_on_host_, [](const auto& entry) { return entry.second.expired(); });
  bytes_after_sweep_ = bytes_;
}

void KnownValues::store(const at::Tensor& tensor, const at::Tensor& contents) {
  const auto bytes = static_cast<Bytes>(tensor.storage().nbytes());
  if (bytes == 0) return;
  const void* const begin = begin_of(tensor);
  if (!contents.defined() || is_too_large(tensor) || contents.sizes() != tensor.sizes() ||
      contents.scalar_type() != tensor.scalar_type())
    return forget(begin);
  const OnlyTheCpu guard;
  const c10::Storage storage = new_storage(tensor.storage().nbytes());
  view_like(storage, tensor).copy_(contents);
  set(begin, {storage, tensor.storage().getWeakStorageImpl()});
}

}  // namespace offprof
