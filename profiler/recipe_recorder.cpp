#include "profiler/recipe_recorder.h"

#include <ATen/core/LegacyTypeDispatch.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstring>
#include <set>
#include <sstream>
#include <utility>

#include "engine/step_copies.h"
#include "profiler/measured_use.h"
#include "profiler/remakeable_ops.h"
#include "traces/check.h"

namespace offprof {
namespace {

/// at::RecordFunction calls plain functions: this is how they find the recorder.
RecipeRecorder* listening_recorder = nullptr;

bool is_plain(const at::Tensor& value) {
  return value.layout() == at::kStrided && !value.is_quantized() && value.has_storage() && !value.is_conj() &&
         !value.is_neg() && !value.unsafeGetTensorImpl()->has_symbolic_sizes_strides();
}

WatchedContent content_of(const at::Tensor& value) {
  return {value.unsafeGetTensorImpl()->version_counter(), version_of(value)};
}

/// LibTorch does not tell whether two tensors count together; but what it hands out is one pointer to the
/// counter.
bool is_same(const WatchedContent& a, const WatchedContent& b) {
  static_assert(sizeof(c10::VariableVersion) == sizeof(void*));
  return a.version == b.version && std::memcmp(&a.counter, &b.counter, sizeof(void*)) == 0;
}

bool changes_or_returns_arguments(const c10::FunctionSchema& schema) {
  const auto has_alias = [](const c10::Argument& argument) { return argument.alias_info() != nullptr; };
  return std::ranges::any_of(schema.arguments(), has_alias) ||
         std::ranges::any_of(schema.returns(), has_alias);
}

/// What is the same wherever it is said again.
bool is_plain_value(const c10::IValue& value) {
  return value.isNone() || value.isScalar() || value.isBool() || value.isString() || value.isDevice() ||
         value.isIntList() || value.isDoubleList() || value.isBoolList();
}

at::Tensor bytes_of(const at::Tensor& value) {
  at::Tensor bytes = at::Tensor(shell_of(value));
  return bytes.as_strided({static_cast<std::int64_t>(value.storage().nbytes() / value.itemsize())}, {1}, 0)
      .view(at::kByte)
      .cpu();
}

/// All of a recipe but its times.
std::string text_of(const FoundRecipe& found) {
  std::ostringstream text;
  const auto add_view = [&](const StorageView& view) {
    text << c10::toString(view.type) << at::IntArrayRef(view.sizes) << at::IntArrayRef(view.strides)
         << view.offset << ';';
  };
  const ExecutableRecipe& recipe = found.executable;
  text << recipe.op.operator_name() << recipe.output;
  add_view(recipe.view);
  for (const RecipeArgument& argument : recipe.arguments) {
    text << argument.source << ':';
    if (argument.source >= 0)
      add_view(argument.view);
    else if (argument.value.isTensor())
      text << static_cast<const void*>(argument.value.toTensor().storage().unsafeGetStorageImpl());
    else
      text << argument.value;
    if (argument.value.isTensor()) add_view(view_of(argument.value.toTensor()));
  }
  for (const TransformMemory& step : found.recipe.use.memory) text << step.bytes << ',' << step.freed << ' ';
  return text.str();
}

}  // namespace

/// An operator that runs. Where it is of no use, only what it changes is known.
struct RecipeRecorder::Call final {
  std::optional<c10::OperatorHandle> op;
  std::vector<Argument> arguments;
  std::vector<AllocationId> changed;
  AllocationId first_allocation = 0;  ///< what it allocates has this id or a larger one
  bool is_useful = false;
};

namespace {

template <typename Call>
struct CallContext final : at::ObserverContext {
  std::shared_ptr<Call> call;
};

}  // namespace

RecipeRecorder::RecipeRecorder(Device& device, const Residents& residents)
    : device_(device), residents_(residents), first_allocation_(device.next_allocation()), callback_(0) {
  OFFPROF_CHECK(listening_recorder == nullptr);
  listening_recorder = this;
  callback_ = at::addThreadLocalCallback(
      at::RecordFunctionCallback(&RecipeRecorder::op_begins, &RecipeRecorder::op_ends)
          .needsInputs(true)
          .needsOutputs(true)
          .scopes({at::RecordScope::FUNCTION}));
}

RecipeRecorder::~RecipeRecorder() {
  at::removeCallback(callback_);
  listening_recorder = nullptr;
}

std::unique_ptr<at::ObserverContext> RecipeRecorder::op_begins(const at::RecordFunction& op) {
  if (listening_recorder == nullptr || !listening_recorder->is_forward_) return nullptr;
  auto context = std::make_unique<CallContext<Call>>();
  context->call = listening_recorder->begin(op);
  return context;
}

void RecipeRecorder::op_ends(const at::RecordFunction& op, at::ObserverContext* context) {
  if (listening_recorder == nullptr || !listening_recorder->is_forward_ || context == nullptr) return;
  const auto& call = static_cast<CallContext<Call>*>(context)->call;
  if (call) listening_recorder->end(call, op.outputs());
}

std::shared_ptr<RecipeRecorder::Call> RecipeRecorder::begin(const at::RecordFunction& op) const {
  const auto name = op.operator_name();
  if (!name) return nullptr;
  const auto handle = c10::Dispatcher::singleton().findSchema(*name);
  if (!handle) return nullptr;
  const c10::FunctionSchema& schema = handle->schema();
  // Behind them on the interpreter's stack lies what is none of theirs.
  const std::size_t count = schema.arguments().size();
  if (op.inputs().size() < count) return nullptr;
  const auto inputs = op.inputs().slice(op.inputs().size() - count);
  auto call = std::make_shared<Call>();
  call->op = handle;
  call->first_allocation = device_.next_allocation();
  call->is_useful = is_remakeable(name->name) && !changes_or_returns_arguments(schema);
  for (std::size_t i = 0; i < count; ++i) {
    const auto* alias = schema.arguments()[i].alias_info();
    if (alias != nullptr && alias->isWrite() && inputs[i].isTensor() && inputs[i].toTensor().has_storage())
      call->changed.push_back(device_.allocation_of(inputs[i].toTensor().storage()).value_or(0));
    call->is_useful = call->is_useful && add_argument(*call, inputs[i]);
  }
  return call->is_useful || !call->changed.empty() ? call : nullptr;
}

/// False: nothing can be made of it again.
bool RecipeRecorder::add_argument(Call& call, const c10::IValue& value) const {
  if (value.isTensor()) return add_tensor(call, value.toTensor());
  if (!is_plain_value(value)) return false;
  call.arguments.push_back({value.isList() ? value.deepcopy() : value});
  return true;
}

bool RecipeRecorder::add_tensor(Call& call, const at::Tensor& value) const {
  if (!value.defined()) {
    call.arguments.emplace_back();
    return true;
  }
  if (!is_plain(value) || value.unsafeGetTensorImpl()->is_wrapped_number()) return false;
  if (residents_.is_paged && residents_.is_paged(value.storage())) return false;
  const auto allocation = device_.allocation_of(value.storage());
  if (!allocation) return false;
  Argument argument = {{}, *allocation, content_of(value), view_of(value)};
  if (*allocation < first_allocation_) {
    if (!residents_.roles.contains(*allocation)) return false;
    argument.value = at::Tensor(shell_of(value));
  }
  call.arguments.push_back(std::move(argument));
  return true;
}

/// The outermost operator that says what made the allocation's content is the last to say so.
void RecipeRecorder::end(const std::shared_ptr<Call>& call, c10::ArrayRef<c10::IValue> outputs) {
  for (const AllocationId allocation : call->changed) producers_.erase(allocation);
  const std::size_t count = call->op->schema().returns().size();
  if (!call->is_useful || outputs.size() < count) return;
  const auto results = outputs.slice(outputs.size() - count);
  for (std::size_t i = 0; i < count; ++i) {
    if (!results[i].isTensor() || !results[i].toTensor().defined()) continue;
    const at::Tensor& result = results[i].toTensor();
    if (!is_plain(result) || !is_dense(result) || result.storage_offset() != 0 ||
        result.nbytes() != result.storage().nbytes())
      continue;
    const AllocationId allocation = device_.allocation_of(result.storage()).value_or(0);
    if (allocation >= call->first_allocation)
      producers_.insert_or_assign(allocation, Producer{call, i, content_of(result), view_of(result)});
  }
}

void RecipeRecorder::on_pack(SavedId tensor, const at::Tensor& value, const PackRequest& request,
                             const PackDecision&) {
  Saved& saved = saved_.emplace_back();
  saved.request = request;
  if (!is_forward_ || request.movability != Movability::kMovable) return;
  saved.content = content_of(value);
  saved.value = at::Tensor(shell_of(value));
  saved_of_[request.storage].push_back(tensor);
}

/// The first: forward is done, and all that it saved is there.
void RecipeRecorder::on_unpack(SavedId) {
  if (!std::exchange(is_forward_, false)) return;
  find();
  producers_.clear();
  for (Saved& saved : saved_) saved.value = at::Tensor();
}

bool RecipeRecorder::saw(const Program& program) const {
  return std::ranges::equal(saved_, program.saved, [](const Saved& saved, const SavedTensor& expected) {
    return saved.request.movability == expected.movability && saved.request.version == expected.version &&
           saved.request.tensor_bytes == expected.bytes;
  });
}

void RecipeRecorder::find() {
  const at::AutoDispatchBelowAutograd below_autograd;
  for (SavedId tensor = 0; tensor < static_cast<SavedId>(saved_.size()); ++tensor)
    if (saved_[tensor].value.defined() && is_first_of_content(tensor)) try_recipe(tensor);
}

bool RecipeRecorder::is_first_of_content(SavedId tensor) const {
  const PackRequest& request = saved_[tensor].request;
  return std::ranges::none_of(saved_of_.at(request.storage), [&](SavedId other) {
    return other < tensor && saved_[other].request.version == request.version;
  });
}

void RecipeRecorder::try_recipe(SavedId tensor) {
  const Saved& saved = saved_[tensor];
  const auto producer = producers_.find(saved.request.storage);
  if (producer == producers_.end() || !is_same(producer->second.content, saved.content) ||
      !saved.content.is_unchanged())
    return;
  const Call& call = *producer->second.call;
  FoundRecipe found = {{tensor, call.op->schema().name(), {}, {}},
                       {*call.op, {}, producer->second.output, producer->second.view}};
  if (find_sources(call, tensor, found) && proves(found)) found_.push_back(std::move(found));
}

bool RecipeRecorder::find_sources(const Call& call, SavedId tensor, FoundRecipe& found) const {
  for (const Argument& argument : call.arguments) {
    RecipeArgument& taken = found.executable.arguments.emplace_back();
    taken.value = argument.value;
    if (argument.allocation == 0) continue;
    if (!argument.content.is_unchanged()) return false;
    if (argument.allocation < first_allocation_) continue;
    taken.source = source_of(argument, tensor);
    taken.view = argument.view;
    if (taken.source < 0) return false;
    if (std::ranges::find(found.recipe.sources, taken.source) == found.recipe.sources.end())
      found.recipe.sources.push_back(taken.source);
  }
  return true;
}

/// The first saved tensor of the argument's content; -1: there is none before.
SavedId RecipeRecorder::source_of(const Argument& argument, SavedId before) const {
  const auto saved = saved_of_.find(argument.allocation);
  if (saved == saved_of_.end()) return -1;
  const auto found = std::ranges::find_if(
      saved->second, [&](SavedId tensor) { return is_same(saved_[tensor].content, argument.content); });
  return found == saved->second.end() || *found >= before ? -1 : *found;
}

/// Makes it, and notes what that takes.
bool RecipeRecorder::proves(FoundRecipe& found) const {
  const SavedId tensor = found.recipe.tensor;
  const auto storage_of = [&](SavedId source) { return saved_[source].value.storage(); };
  at::Tensor made;
  bool is_exact = true;
  try {
    found.recipe.use = use_of(
        device_, [&] { made = remake(found.executable, storage_of); },
        [&] {
          is_exact = is_exact && has_content_of(made, tensor);
          made = at::Tensor();
        });
  } catch (const std::exception&) {
    device_.take_out_of_memory();
    return false;
  }
  Bytes left = 0;
  std::set<std::int32_t> live;
  std::int32_t number = 0;
  for (const TransformMemory& step : found.recipe.use.memory) {
    if (step.bytes > 0)
      live.insert(number++), left = step.bytes;
    else
      live.erase(step.freed);
  }
  return is_exact && live.size() == 1 && left > 0;
}

bool RecipeRecorder::has_content_of(const at::Tensor& made, SavedId tensor) const {
  const Saved& saved = saved_[tensor];
  if (static_cast<Bytes>(made.storage().nbytes()) != saved.request.storage_bytes) return false;
  if (device_.is_virtual()) return true;
  const at::Tensor expected = bytes_of(saved.value), actual = bytes_of(made);
  return expected.nbytes() == actual.nbytes() &&
         std::memcmp(expected.const_data_ptr(), actual.const_data_ptr(), expected.nbytes()) == 0;
}

std::vector<FoundRecipe> agreed(std::vector<FoundRecipe> first, const std::vector<FoundRecipe>& second) {
  std::set<std::string> others;
  for (const FoundRecipe& found : second)
    others.insert(std::to_string(found.recipe.tensor) + ' ' + text_of(found));
  std::erase_if(first, [&](const FoundRecipe& found) {
    return !others.contains(std::to_string(found.recipe.tensor) + ' ' + text_of(found));
  });
  return first;
}

}  // namespace offprof
