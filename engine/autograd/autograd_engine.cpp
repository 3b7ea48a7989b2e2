#include "engine/autograd/autograd_engine.h"

#include <ATen/record_function.h>
#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/graph_task.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <atomic>
#include <functional>
#include <thread>
#include <utility>

#include "engine/autograd/offload_step.h"
#include "engine/autograd/wrapped_tensor.h"
#include "engine/recompute/random_draws.h"
#include "engine/torch/torch_compat.h"
#include "traces/base/check.h"

namespace offprof {
namespace {

/// Hooks of one saved tensor. Autograd destroys them when it no longer needs the tensor.
class SavedTensorHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SavedTensorHooks(std::shared_ptr<OffloadStep> step) : step_(std::move(step)) {}
  ~SavedTensorHooks() override {
    if (tensor_ >= 0) step_->release(tensor_);
  }
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;

  void call_pack_hook(const at::Tensor& tensor) override {
    if (auto wrapped = unwrap(tensor)) {
      tensor_ = step_->pack(wrapped->plain, wrapped->inner);
      wrap_ = std::move(wrapped->wrap);
    } else {
      tensor_ = step_->pack(tensor, tensor);
    }
  }
  at::Tensor call_unpack_hook() override {
    at::Tensor tensor = step_->unpack(tensor_);
    return wrap_ ? wrap_(tensor) : tensor;
  }

 private:
  std::shared_ptr<OffloadStep> step_;
  std::function<at::Tensor(const at::Tensor&)> wrap_;  ///< empty: the saved tensor was a plain one
  SavedId tensor_ = -1;                                ///< -1: pack failed
};

/// This thread's innermost SavingElsewhere; null: there is none.
thread_local const SavingElsewhere::MakeHooks* hooks_elsewhere = nullptr;

/// Step of this thread's innermost CurrentStep, if it watches random draws. LibTorch calls plain functions,
/// which find the step here. Backward's own threads have none.
thread_local OffloadStep* drawing_step = nullptr;
/// True if a CurrentStep of this thread has registered tell_of_draw with LibTorch.
thread_local bool hears_draws = false;

std::unique_ptr<at::ObserverContext> tell_of_draw(const at::RecordFunction& op) {
  if (drawing_step == nullptr) return nullptr;
  if (draws_random_numbers(op.name())) drawing_step->draw(op.name());
  return nullptr;
}

/// The step of the innermost CurrentStep.
std::shared_ptr<OffloadStep>& current_step() {
  static auto* step = new std::shared_ptr<OffloadStep>;  // never destroyed, like the engines
  return *step;
}

/// Returns the hooks of a tensor that is about to be saved; nullptr: no step is current.
std::unique_ptr<torch::autograd::SavedVariableHooks> hooks_of_saved_tensor() {
  if (hooks_elsewhere != nullptr) return (*hooks_elsewhere)();
  if (!current_step()) return nullptr;
  return std::make_unique<SavedTensorHooks>(current_step());
}

class AutogradEngine final : public torch::autograd::Engine {
 public:
  /// Never destroyed: at exit, destruction of an engine races with other destructors.
  static AutogradEngine& instance() {
    static auto* engine = new AutogradEngine;
    return *engine;
  }
  static torch::autograd::Engine& stub() { return instance(); }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    return hooks_of_saved_tensor();
  }

  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs, bool keep_graph,
                                         bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    try {
      auto gradients = Engine::execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
      while (done_.use_count() > 1) std::this_thread::yield();
      done_.reset();
      return gradients;
    } catch (...) {
      done_.reset();
      throw;
    }
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& graph_task, NodePointer graph_root,
      torch::autograd::InputBuffer&& inputs) override {
    auto future = Engine::execute_with_graph_task(graph_task, std::move(graph_root), std::move(inputs));
    done_ = graph_task;
    return future;
  }

 private:
  /// The graph task of the `execute` that runs on this thread. A device's thread first reports that the task
  /// is done, and then releases it and the requested gradients: possibly after `execute` would have returned.
  /// So `execute` waits until it is the last holder.
  static thread_local std::shared_ptr<torch::autograd::GraphTask> done_;
};

thread_local std::shared_ptr<torch::autograd::GraphTask> AutogradEngine::done_;

/// Stands before the engine that runs backward.
class InterposedEngine final : public torch::autograd::Engine {
 public:
  /// Takes the present default engine as the one behind. Never destroyed: see AutogradEngine.
  static InterposedEngine& instance() {
    static auto* engine = new InterposedEngine(Engine::get_default_engine());
    return *engine;
  }
  static torch::autograd::Engine& stub() { return instance(); }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (auto hooks = behind_.get_default_saved_variable_hooks()) {
      saved_by_other_hooks.fetch_add(1, std::memory_order_relaxed);
      return hooks;
    }
    return hooks_of_saved_tensor();
  }

  torch::autograd::variable_list execute(const torch::autograd::edge_list& roots,
                                         const torch::autograd::variable_list& inputs, bool keep_graph,
                                         bool create_graph, bool accumulate_grad,
                                         const torch::autograd::edge_list& outputs) override {
    return behind_.execute(roots, inputs, keep_graph, create_graph, accumulate_grad, outputs);
  }

  c10::intrusive_ptr<at::ivalue::Future> execute_with_graph_task(
      const std::shared_ptr<torch::autograd::GraphTask>& graph_task, NodePointer graph_root,
      torch::autograd::InputBuffer&& inputs) override {
    return behind_.execute_with_graph_task(graph_task, std::move(graph_root), std::move(inputs));
  }

  std::unique_ptr<torch::autograd::AnomalyMetadata> make_anomaly_metadata() override {
    return behind_.make_anomaly_metadata();
  }

  std::atomic<std::int64_t> saved_by_other_hooks = 0;

 private:
  explicit InterposedEngine(Engine& behind) : behind_(behind) {}

  Engine& behind_;
};

}  // namespace

void install_autograd_engine() {
  torch::autograd::set_default_engine_stub(&AutogradEngine::stub);
  OFFPROF_CHECK(&torch::autograd::Engine::get_default_engine() == &AutogradEngine::instance());
}

void interpose_autograd_engine() {
  InterposedEngine::instance();  // finds the engine behind it
  torch::autograd::set_default_engine_stub(&InterposedEngine::stub);
}

std::int64_t tensors_saved_by_other_hooks() {
  return InterposedEngine::instance().saved_by_other_hooks.load(std::memory_order_relaxed);
}

CurrentStep::CurrentStep(std::shared_ptr<OffloadStep> step) : drawing_before_(drawing_step) {
  drawing_step = step && step->watches_draws() ? step.get() : nullptr;
  if (drawing_step != nullptr && !std::exchange(hears_draws, true))
    callback_ = at::addThreadLocalCallback(
        at::RecordFunctionCallback(&tell_of_draw).scopes({at::RecordScope::FUNCTION}));
  before_ = std::exchange(current_step(), std::move(step));
}

CurrentStep::~CurrentStep() {
  current_step() = std::move(before_);
  if (callback_) {
    at::removeCallback(*callback_);
    hears_draws = false;
  }
  drawing_step = drawing_before_;
}

SavingElsewhere::SavingElsewhere(MakeHooks make)
    : make_(std::move(make)), before_(std::exchange(hooks_elsewhere, &make_)) {}

SavingElsewhere::~SavingElsewhere() {
  hooks_elsewhere = before_;
}

}  // namespace offprof
