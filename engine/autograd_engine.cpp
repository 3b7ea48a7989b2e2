#include "engine/autograd_engine.h"

#include <torch/csrc/autograd/engine.h>
#include <torch/csrc/autograd/saved_variable_hooks.h>

#include <utility>

#include "engine/offload_step.h"
#include "traces/check.h"

namespace offprof {
namespace {

/// One saved tensor. Its destructor is autograd's word that the tensor is not needed any more.
class SavedTensorHooks final : public torch::autograd::SavedVariableHooks {
 public:
  explicit SavedTensorHooks(std::shared_ptr<OffloadStep> step) : step_(std::move(step)) {}
  ~SavedTensorHooks() override {
    if (tensor_ >= 0) step_->release(tensor_);
  }
  SavedTensorHooks(const SavedTensorHooks&) = delete;
  SavedTensorHooks& operator=(const SavedTensorHooks&) = delete;

  void call_pack_hook(const at::Tensor& tensor) override { tensor_ = step_->pack(tensor); }
  at::Tensor call_unpack_hook() override { return step_->unpack(tensor_); }

 private:
  std::shared_ptr<OffloadStep> step_;
  SavedId tensor_ = -1;  ///< -1: pack did not succeed
};

class AutogradEngine final : public torch::autograd::Engine {
 public:
  /// Never destroyed: at exit, tearing an engine down races with whatever else is being torn down.
  static AutogradEngine& instance() {
    static auto* engine = new AutogradEngine;
    return *engine;
  }
  static torch::autograd::Engine& stub() { return instance(); }

  std::unique_ptr<torch::autograd::SavedVariableHooks> get_default_saved_variable_hooks() override {
    if (!step_) return nullptr;
    return std::make_unique<SavedTensorHooks>(step_);
  }

  void set_step(std::shared_ptr<OffloadStep> step) { step_ = std::move(step); }

 private:
  std::shared_ptr<OffloadStep> step_;
};

}  // namespace

void install_autograd_engine() {
  torch::autograd::set_default_engine_stub(&AutogradEngine::stub);
  OFFPROF_CHECK(&torch::autograd::Engine::get_default_engine() == &AutogradEngine::instance());
}

CurrentStep::CurrentStep(std::shared_ptr<OffloadStep> step) {
  AutogradEngine::instance().set_step(std::move(step));
}

CurrentStep::~CurrentStep() {
  AutogradEngine::instance().set_step(nullptr);
}

}  // namespace offprof
