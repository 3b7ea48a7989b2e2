#include "profiler/script/script_session.h"

#include <fmt/format.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <string_view>
#include <utility>

#include "profiler/stages/measure_policy.h"
#include "profiler/stages/record_run.h"
#include "profiler/stages/step_error.h"
#include "traces/base/check.h"
#include "traces/base/error.h"

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

/// Returns the error for a program whose steps are too seldom alike.
Error too_many_groups(const StepGroups& groups) {
  const std::vector<StepGroup> kinds = groups.summary();
  return input_error(fmt::format("the program's steps differ: of {} steps, at most {} are alike ({} kinds)",
                                 groups.steps(), kinds.front().steps, kinds.size()),
                     "offprof needs several steps with the same shapes: pad to fixed sizes, or allow more "
                     "steps: --patience N");
}

ScriptRequest complete(ScriptRequest request) {
  request.run = with_needs_of_fallback(std::move(request.run));
  return request;
}

}  // namespace

ScriptSession::ScriptSession(ScriptRequest request, Device& device, Progress progress, StepTracing* tracing,
                             CodeLocator locate)
    : request_(complete(std::move(request))),
      device_(device),
      progress_([this, report = std::move(progress)](const std::string& what) {
        report(fmt::format("{}: at most {} steps left", what, steps_left()));
      }),
      tracing_(tracing),
      locate_(std::move(locate)),
      budget_(budget_of_script({.calibrates = !device.known_link(),
                                .computes_beside_host = !device.torch_device().is_cpu(),
                                .traces = tracing != nullptr && tracing->is_on(),
                                .searches = asks_for_recomputations(request_.run)})),
      source_{device_, progress_, [this] { return residents_; }, {}, budget_},
      groups_(parse_shape(request_.shape), budget_.keep),
      script_(profile()),
      idle_at_end_(device) {
  RunSettings& settings = request_.run.settings;
  if (request_.has_default_steps) settings.steps = budget_.measured;
  budget_.warmup = settings.warmup;
  if (!request_.run.has_timeline) budget_.timeline_warmup = budget_.timeline = 0;
  budget_.measured = steps_to_train(settings.steps, device_) * static_cast<int>(1 + request_.compared.size());
  most_steps_ = budget_.sum();
  taken_ = 1;  // the one before the first begin_step
  Trace& trace = result_.trace;
  trace.settings = settings;
  trace.model.name = program_name(request_);
  trace.model.fingerprint = request_.fingerprint;
  trace.environment = environment_of(request_.run, device_);
  trace.gradients = "not applicable";
  trace.policy = request_.run.policy = policy_beforehand(request_.run, trace);
  require_disk(trace.policy, device_);
  forget_refusals(device_);
}

StepScript<void> ScriptSession::profile() {
  const RunRequest& run = request_.run;
  const auto transforms = transforms_of(run);
  StepGuide guide =
      co_await record_run(source_, run, transforms, /*offloads_parameters=*/false, result_.trace);
  request_.run.policy = result_.trace.policy;
  PolicySteps& steps = policy_steps_.emplace(source_, result_.trace, std::move(guide), transforms);
  is_recorded_ = true;
  device_.take_out_of_memory();
  if (const auto refusal = steps.refusal_beforehand()) {
    result_.refusal = {refusal->asked_bytes, refusal->live_bytes, *refusal->capacity_bytes, {}};
    co_return;
  }
  co_await measure_policy(steps, run, device_, tracing_, {}, result_);
  note_growth();
  for (const Policy& policy : request_.compared) {
    const std::vector<StepResult> measured =
        co_await steps.train(policy, steps_to_train(run.settings.steps, device_), Recording::kNone);
    compared_.push_back({policy, figures_of_trained(measured, result_.trace.program, device_)});
  }
}

bool ScriptSession::begin_step(const ProgramTensors& tensors) {
  end_step();
  ++steps_;
  if (order_ == nullptr && steps_ < request_.run.settings.warmup) {
    progress_("warming up");
    ++taken_;
    return true;
  }
  residents_ = std::make_shared<const Residents>(residents_of(tensors, device_));
  go_on();
  if (order_ == nullptr) return false;
  if (result_.trace.model.parameters == 0) note_program(tensors);
  step_.emplace(device_, *order_, residents_, tracing_, locate_);
  current_.emplace(step_->step());
  begin_phase(ScriptPhase::kForward);
  return true;
}

/// Gives the result of the last step to the script, unless that step was unlike those to record: then its
/// order is carried out again. Sets the next order; nullptr: the script has ended.
void ScriptSession::go_on() {
  if (order_ == nullptr && !has_ended_) {
    order_ = script_.begin();
  } else if (finished_ && !filter_) {
    observe();
  } else if (finished_ && !filter_->accepts(*order_, *finished_)) {
    skip_step();
  } else if (finished_) {
    skipped_in_a_row_ = 0;
    take(std::move(*finished_));
  }
  finished_.reset();
  has_ended_ = order_ == nullptr;
}

/// Groups the last step. Once the group to record has enough steps, they are the results of the script's
/// first orders.
void ScriptSession::observe() {
  groups_.add(std::move(*finished_));
  if (auto chosen = groups_.choose()) {
    filter_.emplace(chosen->front());
    result_.trace.steps_differ = groups_.differ_in_shapes();
    for (StepResult& step : *chosen) take(std::move(step));
    return;
  }
  if (groups_.steps() >= request_.patience_steps) throw too_many_groups(groups_);
}

/// Gives the script the result of the step that it asked for.
void ScriptSession::take(StepResult step) {
  ++taken_;
  if (order_->recording == Recording::kProgram) leaks_.add(step.recording);
  order_ = script_.go_on(std::move(step));
}

void ScriptSession::skip_step() {
  ++skipped_;
  if (!filter_->has_same_tensors(*finished_)) result_.trace.steps_differ = true;
  if (++skipped_in_a_row_ < request_.patience_steps) return;
  throw input_error(
      fmt::format("none of the last {} steps was like those that were recorded", skipped_in_a_row_),
      "If the program has changed for good, as when it unfreezes layers, record later: --warmup N; if its "
      "steps differ, record the largest: --shape largest; or allow more steps: --patience N");
}

/// Notes the size of the model. Throws Error (input) if none of its parameters is on the device, unless FSDP2
/// gathers them there (CPUOffloadPolicy).
void ScriptSession::note_program(const ProgramTensors& tensors) {
  if (!tensors.parameters.empty() && residents_->roles.empty() && !residents_->gathers_parameters())
    throw input_error(
        fmt::format("the program's parameters are not in the memory of the device {}: they are on {}",
                    request_.run.device, tensors.parameters.front().device().str()),
        "Name the device that the program trains on: --device host or virtual:PROFILE; in a program that "
        "records "
        "itself, create the model after the recording has begun");
  ModelInfo& model = result_.trace.model;
  for (const at::Tensor& parameter : tensors.parameters) {
    model.parameters += parameter.numel();
    model.parameter_bytes += static_cast<Bytes>(parameter.nbytes());
  }
  if (const auto& states = tensors.optimizer_states)
    model.optimizer = OptimizerMemory{.states = bytes_on(device_.torch_device(), *states)};
  model.held_gradient_bytes = bytes_on(device_.torch_device(), tensors.gradients);
}

void ScriptSession::begin_phase(ScriptPhase phase) {
  if (!step_ || phase_ == phase) return;
  phase_ = phase;
  step_->begin_phase(name_of(phase));
}

/// Returns the step that runs under a policy; nullptr: none.
OffloadStep* ScriptSession::current_step() const {
  return step_ ? step_->step().get() : unrecorded_.get();
}

void ScriptSession::begin_call(std::span<const at::Tensor> inputs) {
  if (OffloadStep* const step = current_step()) step->add_inputs(inputs);
}

void ScriptSession::end_call(std::span<const at::Tensor> outputs) {
  if (OffloadStep* const step = current_step()) step->add_outputs(outputs);
}

void ScriptSession::end_backward() {
  if (OffloadStep* const step = current_step()) step->backward_end();
}

void ScriptSession::begin_unrecorded_step(const Policy& policy, const ProgramTensors& tensors) {
  OFFPROF_CHECK(policy_steps_ && order_ == nullptr);
  end_step();
  if (limited_by_ != policy) policy_steps_->set_limits(policy);
  limited_by_ = policy;
  residents_ = std::make_shared<const Residents>(residents_of(tensors, device_));
  unrecorded_ =
      std::make_shared<OffloadStep>(device_, policy, policy_steps_->guide_for(policy), residents_, nullptr);
  current_.emplace(unrecorded_);
}

bool ScriptSession::may_lose(const Policy& policy) const {
  OFFPROF_CHECK(policy_steps_.has_value());
  return PolicySteps::loses_something(policy_steps_->guide_for(policy));
}

void ScriptSession::end_step() {
  if (unrecorded_) {
    current_.reset();
    unrecorded_.reset();
  }
  if (!step_) return;
  current_.reset();
  phase_.reset();
  step_->end();
  finished_ = step_->finish();
  resident_bytes_.push_back(finished_->device_resident_bytes);
  step_.reset();
}

void ScriptSession::abandon_step() {
  current_.reset();
  unrecorded_.reset();
  phase_.reset();
  step_.reset();
  lift_limits(device_);
}

void ScriptSession::forget_in_child() {
  current_.reset();
  if (step_) step_->forget_in_child();
}

/// Notes memory that the program keeps from each step.
void ScriptSession::note_growth() {
  std::map<Bytes, std::size_t> growths;
  for (std::size_t i = 1; i < resident_bytes_.size(); ++i)
    ++growths[resident_bytes_[i] - resident_bytes_[i - 1]];
  const auto usual = std::ranges::max_element(growths, {}, [](const auto& growth) { return growth.second; });
  if (usual == growths.end() || usual->first <= 0) return;
  const auto cause = leaks_.cause_of(usual->first);
  result_.trace.notes.push_back(
      fmt::format("the program keeps {} more with most steps{}, as when a loss is stored with its graph "
                  "(losses.append(loss) instead of loss.item()): predictions {}",
                  format_bytes(usual->first), cause ? fmt::format(" ({})", *cause) : "",
                  follow_growth(usual->first) ? "are those of the last measured step"
                                              : "assume that this does not grow"));
}

/// Lets the recorded steps begin with what the last measured one began with, if that is `growth` more for
/// each step between them. Returns false if it is not.
bool ScriptSession::follow_growth(Bytes growth) {
  Trace& trace = result_.trace;
  const Bytes measured = *trace.metrics.device_resident_bytes;
  const auto recorded = std::ranges::find(resident_bytes_, trace.program.resident_bytes);
  const auto last = std::find(recorded, resident_bytes_.end(), measured);
  if (last == resident_bytes_.end() || measured != *recorded + growth * (last - recorded)) return false;
  trace.program.resident_bytes = measured;
  if (trace.dense_program) trace.dense_program->resident_bytes = measured;
  return true;
}

RunResult& ScriptSession::result() {
  add_notes(result_.trace, device_);
  if (tracing_ != nullptr)
    for (std::string& note : tracing_->take_notes()) result_.trace.notes.push_back(std::move(note));
  return result_;
}

}  // namespace offprof
