#include "engine/parameters/parameter_offloader.h"

#include <ATen/core/dispatch/Dispatcher.h>
#include <torch/csrc/autograd/function_hook.h>
#include <torch/csrc/autograd/variable.h>
#include <torch/library.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "engine/autograd/step_listener.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// A key above autograd's that nobody else uses: LibTorch has it for modes in tests.
constexpr c10::DispatchKey kKey = c10::DispatchKey::TESTING_ONLY_GenericMode;

/// The dispatcher calls plain functions, which find the offloader here.
ParameterOffloader* active_offloader = nullptr;

/// True for operators that return only views of their arguments: they read no values. Operators inside that
/// do are dispatched by themselves.
bool is_view(const c10::FunctionSchema& schema) {
  const auto is_shared = [](const c10::Argument& value) {
    return value.alias_info() != nullptr && !value.alias_info()->isWrite();
  };
  return !schema.returns().empty() && std::ranges::all_of(schema.returns(), is_shared);
}

TORCH_LIBRARY_IMPL(_, TESTING_ONLY_GenericMode, library) {
  library.fallback(torch::CppFunction::makeFromBoxedFunction<&ParameterOffloader::call>());
}

}  // namespace

/// A running operator.
class ParameterOffloader::Use {
 public:
  Use(ParameterOffloader& offloader, std::vector<ParameterGroupUse> uses)
      : offloader_(offloader), uses_(std::move(uses)) {
    const std::lock_guard turn(offloader_.mutex_);
    offloader_.scheduler_.begin_use(uses_);
  }
  ~Use() {
    if (uses_.empty()) return;
    const std::lock_guard turn(offloader_.mutex_);
    offloader_.scheduler_.abandon_use(uses_);
  }
  Use(const Use&) = delete;
  Use& operator=(const Use&) = delete;

  void end() {
    const std::lock_guard turn(offloader_.mutex_);
    const std::vector<ParameterGroupUse> uses = std::exchange(uses_, {});
    offloader_.scheduler_.end_use(uses);
  }

 private:
  ParameterOffloader& offloader_;
  std::vector<ParameterGroupUse> uses_;
};

class ParameterOffloader::GradientHook final : public torch::autograd::PostAccumulateGradHook {
 public:
  /// Observes the parameter that is added next.
  explicit GradientHook(ParameterOffloader& offloader)
      : offloader_(offloader), parameter_(offloader.parameters_.size()) {}
  void operator()(const at::Tensor& parameter) override {
    offloader_.see_gradient(parameter, offloader_.gradients_of_[parameter_]);
  }

 private:
  ParameterOffloader& offloader_;  // it removes its hooks when it is destroyed
  std::size_t parameter_;
};

ParameterOffloader::Scope::Scope(ParameterOffloader* offloader) {
  OFFPROF_CHECK(active_offloader == nullptr);
  active_offloader = offloader;
  if (offloader != nullptr) key_.emplace(kKey);
}

ParameterOffloader::Scope::~Scope() {
  active_offloader = nullptr;
}

ParameterOffloader* ParameterOffloader::current() {
  return active_offloader;
}

ParameterOffloader::ParameterOffloader(Device& device, std::unique_ptr<ParameterStore> store,
                                       Bytes window_bytes, Bytes least_bytes)
    : device_(device), store_(std::move(store)), least_bytes_(least_bytes), scheduler_(window_bytes, *this) {}

ParameterOffloader::~ParameterOffloader() {
  store_.reset();  // completes all loads
  for (const at::Tensor& parameter : parameters_)
    torch::autograd::impl::set_post_acc_grad_hooks(parameter, nullptr);
}

void ParameterOffloader::call(const c10::OperatorHandle& op, c10::DispatchKeySet keys,
                              torch::jit::Stack* stack) {
  const c10::DispatchKeySet below = keys & c10::DispatchKeySet(c10::DispatchKeySet::FULL_AFTER, kKey);
  if (active_offloader == nullptr || is_view(op.schema())) return op.redispatchBoxed(below, stack);
  const c10::impl::ExcludeDispatchKeyGuard not_within(kKey);
  Use use(*active_offloader, active_offloader->uses_of(op, *stack));
  op.redispatchBoxed(below, stack);
  use.end();
}

std::vector<ParameterGroupUse> ParameterOffloader::uses_of(const c10::OperatorHandle& op,
                                                           const torch::jit::Stack& stack) const {
  const std::vector<c10::Argument>& arguments = op.schema().arguments();
  const auto values = torch::jit::last(stack, arguments.size());
  std::vector<ParameterGroupUse> uses;
  const std::lock_guard turn(mutex_);
  for (std::size_t i = 0; i < arguments.size(); ++i) {
    const c10::AliasInfo* alias = arguments[i].alias_info();
    add_uses(values[i], alias != nullptr && alias->isWrite(), uses);
  }
  return uses;
}

void ParameterOffloader::add_uses(const c10::IValue& argument, bool changes,
                                  std::vector<ParameterGroupUse>& uses) const {
  if (argument.isList())
    for (const c10::IValue& element : argument.toListRef()) add_uses(element, changes, uses);
  if (!argument.isTensor() || !argument.toTensor().defined() || !argument.toTensor().has_storage()) return;
  const auto found = group_of_.find(argument.toTensor().storage().unsafeGetStorageImpl());
  if (found != group_of_.end()) uses.push_back({found->second, changes});
}

void ParameterOffloader::adopt(const at::Tensor& value) {
  if (!value.defined() || !value.has_storage()) return;
  const std::lock_guard turn(mutex_);
  const c10::Storage& storage = value.storage();
  if (is_adoptable(storage)) scheduler_.appear(add_group(storage));
}

bool ParameterOffloader::is_adoptable(const c10::Storage& storage) const {
  return static_cast<Bytes>(storage.nbytes()) >= least_bytes_ && !is_parameter_group(storage);
}

void ParameterOffloader::adopt_parameter(const at::Tensor& parameter) {
  adopt(parameter);
  watch_gradient(parameter);
}

bool ParameterOffloader::adopt_parameter_in_file(const at::Tensor& parameter, const FileRange& range) {
  const c10::Storage& storage = parameter.storage();
  OFFPROF_CHECK(static_cast<Bytes>(storage.nbytes()) == range.bytes);
  {
    const std::lock_guard turn(mutex_);
    if (!is_adoptable(storage)) return false;
    const auto slot = store_->add_file(range);
    if (!slot) return false;
    const ParameterGroupId group = add_group(storage);
    groups_[group].slot = slot;
    scheduler_.appear_saved(group);
    storage.set_data_ptr_noswap(at::DataPtr(nullptr, storage.device()));
  }
  watch_gradient(parameter);
  return true;
}

void ParameterOffloader::watch_gradient(const at::Tensor& parameter) {
  if (!parameter.requires_grad() || !parameter.is_leaf()) return;
  torch::autograd::impl::set_post_acc_grad_hooks(parameter, std::make_unique<GradientHook>(*this));
  parameters_.push_back(parameter);
  gradients_of_.emplace_back();
}

ParameterGroupId ParameterOffloader::add_group(const c10::Storage& storage) {
  const ParameterGroupId group = scheduler_.add(static_cast<Bytes>(storage.nbytes()));
  groups_.push_back({storage.getWeakStorageImpl()});
  group_of_.emplace(storage.unsafeGetStorageImpl(), group);
  return group;
}

void ParameterOffloader::see_gradient(const at::Tensor& parameter, GroupsOfStep& gradients) {
  const at::Tensor& gradient = parameter.grad();
  if (!gradient.defined() || !gradient.has_storage()) return;
  const std::lock_guard turn(mutex_);
  appear(gradient.storage(), gradients);
}

void ParameterOffloader::adopt_for_step(const at::Tensor& value, AllocationId made_since) {
  if (!value.defined() || !value.has_storage()) return;
  const auto allocation = device_.allocation_of(value.storage());
  if (!allocation || *allocation < made_since) return;
  const std::lock_guard turn(mutex_);
  appear(value.storage(), values_);
}

/// Reuses groups between steps: the n-th storage of a step gets the n-th group, if the size is the same.
/// Within a step no group is reused: the forecast would prefetch the group for its earlier storage, which may
/// be gone.
void ParameterOffloader::appear(const c10::Storage& storage, GroupsOfStep& made) {
  if (!is_adoptable(storage)) return;
  const std::size_t index = made.in_step++;
  if (index == made.groups.size()) made.groups.push_back(-1);
  ParameterGroupId& group = made.groups[index];
  if (group < 0 || scheduler_.bytes(group) != static_cast<Bytes>(storage.nbytes()))
    group = add_group(storage);
  else
    set_storage(group, storage);
  scheduler_.appear(group);
}

void ParameterOffloader::set_storage(ParameterGroupId group, const c10::Storage& storage) {
  groups_[group].storage = storage.getWeakStorageImpl();
  group_of_.emplace(storage.unsafeGetStorageImpl(), group);
}

void ParameterOffloader::forget(ParameterGroupId group) {
  scheduler_.vanish(group);
  group_of_.erase(groups_[group].storage._unsafe_get_target());
  groups_[group].storage.reset();
}

void ParameterOffloader::forget_gradients() {
  const std::lock_guard turn(mutex_);
  for (GroupsOfStep& gradients : gradients_of_) {
    for (const ParameterGroupId group : gradients.groups)
      if (scheduler_.exists(group)) forget(group);
    gradients.in_step = 0;
  }
}

void ParameterOffloader::end_step() {
  const std::lock_guard turn(mutex_);
  try {
    give_values_back();
    scheduler_.end_step();
  } catch (...) {
    forget_failures();  // drop the failures of a step that has already failed
    throw;
  }
  store_->end_step();
}

void ParameterOffloader::give_values_back() {
  for (const ParameterGroupId group : values_.groups) {
    if (!scheduler_.exists(group)) continue;
    if (is_held(group)) {
      const ParameterGroupUse use = {group};
      scheduler_.begin_use({&use, 1});
      scheduler_.abandon_use({&use, 1});
    }
    forget(group);
  }
  values_.in_step = 0;
}

void ParameterOffloader::forget_failures() noexcept {
  try {
    store_->end_step();
  } catch (...) {
  }
}

void ParameterOffloader::learn() {
  const std::lock_guard turn(mutex_);
  scheduler_.learn();
}

void ParameterOffloader::bring_all() {
  const std::lock_guard turn(mutex_);
  scheduler_.bring_all();
}

bool ParameterOffloader::is_parameter_group(const c10::Storage& storage) const {
  return group_of_.contains(storage.unsafeGetStorageImpl());
}

/// Copies between a store and a group's memory. The time of copies over the link does not count as the
/// model's.
template <typename Copy, typename Tell>
void ParameterOffloader::copy(const c10::Storage& storage, const Copy& copy, const Tell& tell) {
  if (listener_ == nullptr || !store_->is_over_link()) return copy();
  listener_->on_hook_begin();
  copy();
  if (const auto allocation = device_.allocation_of(storage)) (listener_->*tell)(*allocation);
  listener_->on_hook_end();
}

void ParameterOffloader::fetch(ParameterGroupId group) {
  const auto storage = groups_[group].storage.lock();
  OFFPROF_CHECK(storage && groups_[group].slot);
  c10::Storage memory = device_.allocate(scheduler_.bytes(group));
  copy(
      memory, [&] { store_->begin_load(*groups_[group].slot, memory.mutable_data()); },
      &StepListener::on_fetch);
  if (store_->is_over_link()) traffic_.h2d += scheduler_.bytes(group);
  if (store_->is_over_disk()) traffic_.disk_read += scheduler_.bytes(group);
  storage->set_data_ptr_noswap(std::move(memory.unsafeGetStorageImpl()->_mutable_data_ptr_no_checks()));
  groups_[group].coming = storage;
}

void ParameterOffloader::wait(ParameterGroupId group) {
  const c10::Storage storage(std::move(groups_[group].coming));
  copy(
      storage, [&] { store_->wait_for_load(*groups_[group].slot); }, &StepListener::on_fetched);
}

void ParameterOffloader::evict(ParameterGroupId group, bool changed) {
  const c10::Storage storage(groups_[group].storage.lock());
  if (!storage) return;  // its tensors are gone, and its memory too
  if (changed) save(group, storage);
  storage.set_data_ptr_noswap(at::DataPtr(nullptr, storage.device()));
}

void ParameterOffloader::save(ParameterGroupId group, const c10::Storage& storage) {
  std::optional<ParameterStore::Slot>& slot = groups_[group].slot;
  if (!slot) slot = store_->add(scheduler_.bytes(group));
  copy(
      storage, [&] { store_->save(*slot, storage.data()); }, &StepListener::on_save);
  if (store_->is_over_link()) traffic_.d2h += scheduler_.bytes(group);
  if (store_->is_over_disk()) traffic_.disk_write += scheduler_.bytes(group);
}

}  // namespace offprof
