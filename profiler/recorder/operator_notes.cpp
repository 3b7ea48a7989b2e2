#include "profiler/recorder/operator_notes.h"

#include <c10/util/Exception.h>

#include <algorithm>
#include <array>
#include <memory>
#include <string>
#include <string_view>
#include <utility>

#include "engine/autograd/held_tensor.h"
#include "profiler/recorder/recomputable_ops.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// A dropout's mask depends on the layout of its input, not on its values.
constexpr std::string_view kDropout = "aten::native_dropout";
constexpr std::size_t kDropoutMask = 1;

/// Calls `call` with each tensor that has memory: the value itself, or those in the list.
template <typename Call>
void for_each_tensor(const c10::IValue& value, const Call& call) {
  const auto hand_on = [&](const at::Tensor& tensor) {
    if (tensor.defined() && tensor.has_storage()) call(tensor);
  };
  if (value.isTensor()) hand_on(value.toTensor());
  if (value.isTensorList())
    for (const at::Tensor& tensor : value.toTensorVector()) hand_on(tensor);
}

/// Returns true if the operator overwrites its first argument completely.
bool overwrites(std::string_view op) {
  constexpr std::array kOps = std::to_array<std::string_view>(
      {"aten::bernoulli_", "aten::fill_", "aten::normal_", "aten::uniform_", "aten::zero_"});
  return std::ranges::find(kOps, op) != kOps.end();
}

/// Returns true if the operator only calls other operators, which the notes observe as well.
bool is_made_of_others(const c10::OperatorHandle& op) {
  return op.hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

bool is_plain(const at::Tensor& value) {
  return value.layout() == at::kStrided && !value.is_quantized() && value.has_storage() && !value.is_conj() &&
         !value.is_neg() && !value.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

/// Returns true for values that can be passed again later unchanged.
bool is_plain_value(const c10::IValue& value) {
  return value.isNone() || value.isScalar() || value.isBool() || value.isString() || value.isDevice() ||
         value.isIntList() || value.isDoubleList() || value.isBoolList();
}

bool has_alias(const c10::Argument& argument) {
  return argument.alias_info() != nullptr;
}

bool changes_or_returns_arguments(const c10::FunctionSchema& schema) {
  return std::ranges::any_of(schema.arguments(), has_alias) ||
         std::ranges::any_of(schema.returns(), has_alias);
}

/// Returns true if the operator changes only its first argument and returns it.
bool changes_its_first(const c10::FunctionSchema& schema) {
  const auto& arguments = schema.arguments();
  return schema.name().ends_with('_') && !arguments.empty() && has_alias(arguments.front()) &&
         arguments.front().alias_info()->isWrite() && schema.returns().size() == 1 &&
         std::none_of(arguments.begin() + 1, arguments.end(), has_alias);
}

bool can_run_again(const c10::FunctionSchema& schema) {
  const std::string_view name = schema.name();
  if (changes_its_first(schema)) return is_recomputable(name.substr(0, name.size() - 1)) || overwrites(name);
  return !changes_or_returns_arguments(schema) && (is_recomputable(name) || draws_random_numbers(name));
}

/// Returns a call that allocates memory as large as `view` needs, and makes `view` begin at its start.
NotedCall memory_call(StorageView& view, c10::Device device) {
  view.offset = 0;
  NotedCall call = {c10::Dispatcher::singleton().findSchemaOrThrow("aten::empty_strided", ""), {}};
  for (const c10::IValue& value : std::initializer_list<c10::IValue>{view.sizes, view.strides, view.type,
                                                                     at::kStrided, device, c10::IValue()})
    call.arguments.push_back({value});
  return call;
}

}  // namespace

bool is_same_content(const WatchedContent& a, const WatchedContent& b) {
  return a.version == b.version && is_same_counter(a.counter, b.counter);
}

WatchedContent content_of(const at::Tensor& value) {
  return {value.unsafeGetTensorImpl()->version_counter(), version_of(value)};
}

/// An operator that has begun and not ended.
struct OperatorNotes::Running final : at::ObserverContext {
  Running() = default;
  ~Running() override {
    if (OperatorNotes* const notes = listener_of_thread()->notes) std::erase(notes->running_, this);
  }
  Running(const Running&) = delete;
  Running& operator=(const Running&) = delete;

  const c10::FunctionSchema* schema = nullptr;
  std::optional<NotedCall> call;  ///< nullopt: it could not run again
  std::vector<AllocationId> changed;
  AllocationId first_allocation = 0;  ///< storages that it allocates have this id or a larger one
  bool is_made_of_others = false;
  std::vector<AllocationId> own_saves;  ///< results that it saved itself

  /// Returns true if the allocation may be that of a result.
  bool may_return(AllocationId allocation) const {
    if (call && call->changes_first) return !changed.empty() && allocation == changed.front();
    return allocation >= first_allocation;
  }
  /// Returns the place of a result in own_saves; one that it lacks would be the next.
  std::ptrdiff_t place_of(AllocationId allocation) const {
    return std::ranges::find(own_saves, allocation) - own_saves.begin();
  }
  std::int32_t own_save(AllocationId allocation) const {
    const std::ptrdiff_t place = place_of(allocation);
    return place == std::ssize(own_saves) ? -1 : static_cast<std::int32_t>(place);
  }
};

/// at::RecordFunction calls plain functions, which find the notes here. Backward's own threads have none.
const std::shared_ptr<OperatorNotes::Listener>& OperatorNotes::listener_of_thread() {
  thread_local const auto listener = std::make_shared<Listener>();
  return listener;
}

OperatorNotes::OperatorNotes(Device& device, const Residents& residents)
    : device_(device),
      residents_(residents),
      first_allocation_(device.next_allocation()),
      listener_(listener_of_thread()),
      draws_(device.torch_device(), std::nullopt) {
  OFFPROF_CHECK(listener_->notes == nullptr);
  listener_->notes = this;
  if (listener_->callback) return;
  listener_->callback = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&OperatorNotes::op_begins, &OperatorNotes::op_ends)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

OperatorNotes::~OperatorNotes() {
  listener_->notes = nullptr;
  if (listener_ != listener_of_thread() || !listener_->callback) return;
  at::removeCallback(*listener_->callback);
  listener_->callback.reset();
}

std::unique_ptr<at::ObserverContext> OperatorNotes::op_begins(const at::RecordFunction& op) {
  OperatorNotes* const notes = listener_of_thread()->notes;
  if (notes == nullptr || !notes->is_listening_) return nullptr;
  return notes->begin(op);
}

void OperatorNotes::op_ends(const at::RecordFunction& op, at::ObserverContext* context) {
  OperatorNotes* const notes = listener_of_thread()->notes;
  if (notes == nullptr || !notes->is_listening_ || context == nullptr) return;
  notes->end(static_cast<Running&>(*context), op.outputs());
}

std::unique_ptr<OperatorNotes::Running> OperatorNotes::begin(const at::RecordFunction& op) {
  const auto name = op.operator_name();
  if (!name) return nullptr;
  const bool draws = draws_random_numbers(name->name);
  if (draws) draws_.add({name->name, packed_});
  const auto handle = c10::Dispatcher::singleton().findSchema(*name);
  if (!handle) return nullptr;
  const c10::FunctionSchema& schema = handle->schema();
  // The stack of the interpreter may have values below the arguments.
  const std::size_t count = schema.arguments().size();
  if (op.inputs().size() < count) return nullptr;
  const auto inputs = op.inputs().slice(op.inputs().size() - count);
  auto running = std::make_unique<Running>();
  running->schema = &schema;
  running->first_allocation = device_.next_allocation();
  for (std::size_t i = 0; i < count; ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias == nullptr || !alias->isWrite()) continue;
    for_each_tensor(inputs[i], [&](const at::Tensor& value) {
      running->changed.push_back(device_.allocation_of(value.storage()).value_or(0));
    });
  }
  if (can_run_again(schema)) {
    running->call = NotedCall{*handle, {}, changes_its_first(schema)};
    if (draws) running->call->draw = draws_.list().size() - 1;
    note_arguments(inputs, running->call);
  }
  if (running->call && running->call->changes_first) {
    NotedArgument& changed = running->call->arguments.front();
    changed.is_own = true;
    if (overwrites(name->name)) give_memory(changed, inputs.front().toTensor().device());
  }
  running->is_made_of_others = is_made_of_others(*handle);
  if (running->call) running_.push_back(running.get());
  return running->call || !running->changed.empty() || !running->is_made_of_others ? std::move(running)
                                                                                   : nullptr;
}

/// Records the arguments. Clears the call if an argument cannot be provided again.
void OperatorNotes::note_arguments(c10::ArrayRef<c10::IValue> inputs, std::optional<NotedCall>& call) const {
  for (const c10::IValue& input : inputs) {
    auto argument = noted(input);
    if (!argument) return call.reset();
    call->arguments.push_back(std::move(*argument));
  }
}

std::optional<NotedArgument> OperatorNotes::noted(const c10::IValue& value) const {
  if (value.isTensor()) return noted_tensor(value.toTensor());
  if (!is_plain_value(value)) return std::nullopt;
  return NotedArgument{value.isList() ? value.deepcopy() : value};
}

std::optional<NotedArgument> OperatorNotes::noted_tensor(const at::Tensor& value) const {
  if (!value.defined()) return NotedArgument{};
  if (!is_plain(value) || value.unsafeGetTensorImpl()->is_wrapped_number()) return std::nullopt;
  if (residents_.is_parameter_group && residents_.is_parameter_group(value.storage())) return std::nullopt;
  const auto allocation = device_.allocation_of(value.storage());
  if (!allocation) return std::nullopt;
  NotedArgument argument = {
      {}, *allocation, *allocation < first_allocation_, content_of(value), view_of(value)};
  if (argument.is_resident) {
    if (!residents_.roles.contains(*allocation)) return std::nullopt;
    argument.value = at::Tensor(shell_of(value));
  } else {
    argument.made_by = maker_of(*allocation, argument.content);
  }
  return argument;
}

const NotedResult* OperatorNotes::maker_of(AllocationId allocation, const WatchedContent& content) const {
  const auto found = latest_.find(allocation);
  return found != latest_.end() && is_same_content(found->second->content, content) ? found->second : nullptr;
}

/// Records the results. The outermost operator ends last, so it is the one recorded for an allocation's
/// content.
void OperatorNotes::end(Running& running, c10::ArrayRef<c10::IValue> outputs) {
  for (const AllocationId allocation : running.changed) latest_.erase(allocation);
  if (!running.call && running.is_made_of_others) return;
  const auto& returns = running.schema->returns();
  if (outputs.size() < returns.size()) return;
  if (running.call) calls_.push_back(std::move(*running.call));
  const auto results = outputs.slice(outputs.size() - returns.size());
  for (std::size_t i = 0; i < returns.size(); ++i) {
    for_each_tensor(results[i], [&](const at::Tensor& value) {
      if (running.call && results[i].isTensor())
        add_result(running, i, value);
      else if (!has_alias(returns[i]))
        latest_.erase(device_.allocation_of(value.storage()).value_or(0));
    });
  }
}

/// Records a result of the last call if it fills a storage.
void OperatorNotes::add_result(const Running& running, std::size_t output, const at::Tensor& result) {
  const AllocationId allocation = device_.allocation_of(result.storage()).value_or(0);
  const NotedCall& call = calls_.back();
  if (!running.may_return(allocation)) return;
  latest_.erase(allocation);
  if (!is_plain(result) || !is_dense(result) || result.storage_offset() != 0 ||
      result.nbytes() != result.storage().nbytes())
    return;
  results_.push_back({call_for(call, output, result.device()), output, content_of(result), view_of(result),
                      running.own_save(allocation)});
  latest_.insert_or_assign(allocation, &results_.back());
}

/// Returns the call that makes a result of `call` again: a dropout's mask is made of any values.
const NotedCall* OperatorNotes::call_for(const NotedCall& call, std::size_t output, c10::Device device) {
  if (call.op.schema().name() != kDropout || output != kDropoutMask) return &call;
  NotedCall of_any_values = call;
  give_memory(of_any_values.arguments.front(), device);
  return &calls_.emplace_back(std::move(of_any_values));
}

void OperatorNotes::add_saved(const at::Tensor& value) {
  ++packed_;
  if (!value.has_storage()) return;
  const AllocationId allocation = device_.allocation_of(value.storage()).value_or(0);
  for (Running* const running : running_)
    if (running->may_return(allocation) && running->own_save(allocation) < 0)
      running->own_saves.push_back(allocation);
}

std::vector<NotedResult> OperatorNotes::results_to_come(const at::Tensor& value, std::size_t output) {
  std::vector<NotedResult> results;
  if (!value.has_storage()) return results;
  const AllocationId allocation = device_.allocation_of(value.storage()).value_or(0);
  for (const Running* running : running_) {
    const NotedCall& call = *running->call;
    if (output >= call.op.schema().returns().size()) continue;
    if (!running->may_return(allocation)) continue;
    results.push_back({call_for(call, output, value.device()), output, content_of(value), view_of(value),
                       static_cast<std::int32_t>(running->place_of(allocation))});
  }
  return results;
}

bool OperatorNotes::is_taken() {
  return listener_of_thread()->notes != nullptr;
}

/// Replaces the argument by fresh memory, whose content does not matter.
void OperatorNotes::give_memory(NotedArgument& argument, c10::Device device) {
  const NotedCall& memory = calls_.emplace_back(memory_call(argument.view, device));
  results_.push_back({&memory, 0, argument.content, argument.view});
  argument.made_by = &results_.back();
  argument.is_own = true;
}

}  // namespace offprof
