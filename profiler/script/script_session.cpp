#include "profiler/script/script_session.h"

#include <string_view>
#include <utility>

#include "profiler/recording/measured.h"
#include "profiler/stages/measure_policy.h"
#include "profiler/stages/policy_steps.h"
#include "profiler/stages/record_run.h"
#include "profiler/stages/step_error.h"

namespace offprof {
namespace {

std::string_view name_of(ScriptPhase phase) {
  switch (phase) {
    case ScriptPhase::kForward:
      return "forward";
    case ScriptPhase::kBackward:
      return "backward";
    case ScriptPhase::kOptimizer:
      return "optimizer";
  }
  return {};
}

Residents residents_of(const ProgramTensors& tensors, const DeviceAllocator& allocator) {
  Residents residents;
  const auto add = [&](const at::Tensor& tensor, StorageRole role) {
    if (!tensor.has_storage()) return;
    if (const auto allocation = allocator.allocation_of(tensor.storage()))
      residents.roles.emplace(*allocation, role);
  };
  for (const at::Tensor& parameter : tensors.parameters) {
    add(parameter, StorageRole::kParameter);
    residents.parameters.insert(parameter.unsafeGetTensorImpl());
  }
  for (const at::Tensor& buffer : tensors.buffers) add(buffer, StorageRole::kBuffer);
  return residents;
}

}  // namespace

ScriptSession::ScriptSession(RunRequest request, ModelInfo model, std::vector<Policy> compared,
                             Device& device, Progress progress, StepTracing* tracing)
    : request_(std::move(request)),
      compared_(std::move(compared)),
      device_(device),
      progress_(std::move(progress)),
      tracing_(tracing),
      source_{device_, progress_, [this] { return residents_; }, {}},
      script_(profile()),
      idle_at_end_(device) {
  result_.trace.settings = request_.settings;
  result_.trace.model = std::move(model);
  result_.trace.policy = request_.policy;
  result_.trace.environment = environment_of(request_, device_);
  result_.trace.gradients = "not applicable";
  require_disk(request_.policy, device_);
  forget_refusals(device_);
}

StepScript<void> ScriptSession::profile() {
  const auto transforms = transforms_of(request_);
  StepGuide guide =
      co_await record_run(source_, request_, transforms, /*offloads_parameters=*/false, result_.trace);
  PolicySteps steps(source_, result_.trace, std::move(guide), transforms);
  is_recorded_ = true;
  device_.take_out_of_memory();
  if (const auto refusal = steps.refusal_beforehand()) {
    result_.refusal = {refusal->asked_bytes, refusal->live_bytes, *refusal->capacity_bytes, {}};
    co_return;
  }
  co_await measure_policy(steps, request_, device_, tracing_, {}, result_);
  for (const Policy& policy : compared_) {
    const std::vector<StepResult> measured =
        co_await steps.train(policy, request_.settings.steps, Recording::kNone);
    measured_.push_back({policy, summarize(measured)});
  }
}

bool ScriptSession::begin_step(const ProgramTensors& tensors) {
  end_step();
  if (!has_begun_ && steps_ < request_.settings.warmup) {
    progress_("warming up");
    ++steps_;
    return true;
  }
  residents_ = std::make_shared<const Residents>(residents_of(tensors, device_));
  if (!has_begun_) note_program(tensors);
  order_ = next_order();
  if (order_ == nullptr) return false;
  ++steps_;
  step_.emplace(device_, *order_, residents_, tracing_);
  current_.emplace(step_->step());
  begin_phase(ScriptPhase::kForward);
  return true;
}

/// Continues the script with the last step's result. Returns nullptr once it has ended.
const StepOrder* ScriptSession::next_order() {
  if (!std::exchange(has_begun_, true)) return script_.begin();
  if (!finished_) return nullptr;
  return script_.go_on(*std::exchange(finished_, std::nullopt));
}

void ScriptSession::note_program(const ProgramTensors& tensors) {
  ModelInfo& model = result_.trace.model;
  for (const at::Tensor& parameter : tensors.parameters) {
    model.parameters += parameter.numel();
    model.parameter_bytes += static_cast<Bytes>(parameter.nbytes());
  }
}

void ScriptSession::begin_phase(ScriptPhase phase) {
  if (!step_ || phase_ == phase) return;
  phase_ = phase;
  step_->begin_phase(name_of(phase));
}

void ScriptSession::end_backward() {
  if (step_) step_->step()->backward_end();
}

void ScriptSession::end_step() {
  if (!step_) return;
  current_.reset();
  phase_.reset();
  step_->end();
  finished_ = step_->finish();
  step_.reset();
}

void ScriptSession::abandon_step() {
  current_.reset();
  phase_.reset();
  step_.reset();
  lift_limits(device_);
}

RunResult& ScriptSession::result() {
  add_notes(result_.trace, device_);
  if (tracing_ != nullptr)
    for (std::string& note : tracing_->take_notes()) result_.trace.notes.push_back(std::move(note));
  return result_;
}

}  // namespace offprof
